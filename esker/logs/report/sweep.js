// The sweep: parallel coordinates of its trials, which options mattered, and the best trials.
// Drag along an axis to keep only the trials that pass there; double-click it to keep all again.

const kept = new Map(); // sweep name -> option -> [from, to], in parts of the axis

function sweepSections() {
  return (DATA.sweeps ?? []).map((sweep) => {
    const done = sweep.trials.filter((trial) => trial.value !== null);
    const best = sweep.trials.find((trial) => trial.number === sweep.best);
    const facts = [`${sweep.trials.length} trials on ${sweep.env}`, `${sweep.trials.filter((trial) => trial.state === "pruned").length} pruned`,
      `sampler ${sweep.sampler}`, `objective: ${sweep.objective}`];
    const parts = [make("h2", {}, `Sweep ${sweep.name}`), make("p", { class: "soft" }, facts.join(" · "))];
    if (best) parts.push(make("p", {}, make("b", {}, `best: ${full(best.value)}`), ` with ${Object.entries(best.params).map(([name, value]) => `${name}=${shortValue(value)}`).join(" ")}`));
    if (done.length) parts.push(make("div", { class: "charts" }, parallel(sweep, done), importance(sweep)), trialsTable(sweep, done));
    else parts.push(make("p", { class: "empty" }, "No trial has reported a value yet."));
    return make("section", { class: "sweep" }, ...parts);
  });
}

const shortValue = (value) => (typeof value === "number" ? brief(value) : String(value));

/** An axis of the picture: where a trial stands on it, from 0 to 1, and what to write beside it. */
function dimensionOf(name, part, trials) {
  if (part.choices) {
    const texts = part.choices.map(String);
    return { name, at: (trial) => (texts.indexOf(String(trial.params[name])) + 0.5) / texts.length, marks: texts.map((text, i) => [(i + 0.5) / texts.length, text]) };
  }
  const scale = part.log ? Math.log : (value) => value;
  const back = part.log ? Math.exp : (value) => value;
  const [low, high] = [scale(part.low), scale(part.high)];
  const marks = [0, 0.25, 0.5, 0.75, 1].map((at) => [at, brief(Number(back(low + at * (high - low)).toPrecision(2)))]);
  return { name, at: (trial) => (scale(trial.params[name]) - low) / (high - low || 1), marks };
}

function valueDimension(trials) {
  const values = trials.map((trial) => trial.value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const marks = [0, 0.25, 0.5, 0.75, 1].map((at) => [at, brief(Number((low + at * (high - low)).toPrecision(3)))]);
  return { name: "return", at: (trial) => (trial.value - low) / (high - low || 1), marks };
}

function parallel(sweep, trials) {
  const dimensions = [...Object.entries(sweep.space).map(([name, part]) => dimensionOf(name, part, trials)), valueDimension(trials)];
  const result = dimensions[dimensions.length - 1];
  const height = 300, edge = { left: 46, right: 60, top: 34, bottom: 14 };
  const svg = make("svg", { class: "parallel", role: "img", "aria-label": "parallel coordinates of the trials", height, style: `min-width: ${84 * dimensions.length}px` });
  const tip = make("div", { class: "tip", hidden: true, role: "status" });
  const node = make("div", { class: "card chart wide" }, make("div", { class: "head" }, make("h3", {}, "Parallel coordinates"), make("span", { class: "soft" }, "drag along an axis to filter")), make("div", { class: "across" }, svg), tip);
  const filters = kept.get(sweep.name) ?? kept.set(sweep.name, new Map()).get(sweep.name);
  let width = 0;
  const x = (i) => edge.left + (i / (dimensions.length - 1)) * (width - edge.left - edge.right);
  const y = (at) => edge.top + (1 - at) * (height - edge.top - edge.bottom);
  const passes = (trial) => dimensions.every((one) => !filters.has(one.name) || (one.at(trial) >= filters.get(one.name)[0] && one.at(trial) <= filters.get(one.name)[1]));
  const points = (trial) => dimensions.flatMap((one, i) => (one.at(trial) >= 0 && one.at(trial) <= 1.0001 ? [[x(i), y(one.at(trial))]] : []));

  function draw() {
    width = Math.max(260, svg.clientWidth || node.clientWidth - 28);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const lines = [...trials].sort((a, b) => a.value - b.value).map((trial) => make("path", { class: "line trial", "data-trial": trial.number, d: "M" + points(trial).map((p) => p.map((v) => v.toFixed(1)).join(",")).join("L"),
      style: `stroke: color-mix(in oklab, var(--c1) ${Math.round(100 * result.at(trial))}%, var(--c7))`, opacity: passes(trial) ? 0.35 + 0.6 * result.at(trial) : 0.05,
      "stroke-width": trial.number === sweep.best ? 3.2 : 1.4 }));
    const axes = dimensions.flatMap((one, i) => {
      const range = filters.get(one.name);
      return [make("line", { class: "axis", x1: x(i), x2: x(i), y1: y(0), y2: y(1) }),
        make("text", { x: x(i), y: 16, "text-anchor": "middle", class: "name" }, one.name),
        ...one.marks.map(([at, text]) => make("text", { x: x(i) + 5, y: y(at) + 4, class: "mark" }, text)),
        range ? make("rect", { class: "selection", x: x(i) - 7, width: 14, y: y(range[1]), height: y(range[0]) - y(range[1]) }) : null];
    });
    svg.replaceChildren(...lines, ...axes.filter(Boolean));
  }

  let start = null;
  const where = (event) => {
    const box = svg.getBoundingClientRect();
    const spots = dimensions.map((one, i) => Math.abs(x(i) - (event.clientX - box.left)));
    const i = spots.indexOf(Math.min(...spots));
    return { axis: dimensions[i], at: Math.min(1, Math.max(0, 1 - (event.clientY - box.top - edge.top) / (height - edge.top - edge.bottom))), px: event.clientX - box.left, py: event.clientY - box.top };
  };
  svg.addEventListener("pointerdown", (event) => { start = where(event); svg.setPointerCapture(event.pointerId); });
  svg.addEventListener("pointermove", (event) => {
    const now = where(event);
    if (start && Math.abs(now.at - start.at) > 0.03) filters.set(start.axis.name, [start.at, now.at].sort((a, b) => a - b));
    if (start) draw();
    show(now);
  });
  svg.addEventListener("pointerup", () => { start = null; });
  svg.addEventListener("dblclick", (event) => { filters.delete(where(event).axis.name); draw(); });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; for (const line of svg.querySelectorAll(".trial")) line.classList.remove("lit"); });

  /** Light the trial whose line passes nearest, and say what it was. */
  function show({ px, py }) {
    const distance = (trial) => Math.min(...points(trial).slice(1).map((to, i) => {
      const [from, part] = [points(trial)[i], (px - points(trial)[i][0]) / (to[0] - points(trial)[i][0])];
      return part < 0 || part > 1 ? Infinity : Math.abs(py - (from[1] + part * (to[1] - from[1])));
    }));
    const near = trials.filter(passes).map((trial) => [distance(trial), trial]).sort((a, b) => a[0] - b[0])[0];
    const trial = near && near[0] < 30 ? near[1] : null;
    for (const line of svg.querySelectorAll(".trial")) line.classList.toggle("lit", trial !== null && Number(line.dataset.trial) === trial.number);
    tip.hidden = trial === null;
    if (!trial) return;
    const rows = [[`trial ${trial.number}, ${trial.state}`, full(trial.value)], ...Object.entries(trial.params).map(([name, value]) => [name, shortValue(value)])];
    tip.replaceChildren(...rows.map(([label, value]) => make("div", {}, make("i", { color: "var(--c1)" }), make("span", {}, label), make("b", {}, value))));
    const right = px > width / 2;
    tip.style.left = right ? "" : `${px + 30}px`;
    tip.style.right = right ? `${width - px + 30}px` : "";
    tip.style.top = "54px";
  }

  new ResizeObserver(draw).observe(node);
  return node;
}

function importance(sweep) {
  const parts = Object.entries(sweep.importance ?? {}).sort((a, b) => b[1] - a[1]);
  if (!parts.length) return null;
  const most = Math.max(...parts.map(([, value]) => value)) || 1;
  return make("div", { class: "card importance wide" }, make("div", { class: "head" }, make("h3", {}, "Importance"), make("span", { class: "soft" }, "share of the variation of the return, PED-ANOVA over completed trials")),
    ...parts.map(([name, value]) => make("div", { class: "bar", style: `--part: ${value / most}` }, make("span", {}, name), make("i", {}), make("b", {}, value.toFixed(2)))));
}

function trialsTable(sweep, trials) {
  const names = Object.keys(sweep.space);
  const sorted = [...trials].sort((a, b) => b.value - a.value);
  const head = ["trial", "state", ...names].map((text) => make("th", {}, text)).concat(["steps", "return"].map((text) => make("th", { class: "number" }, text)));
  const row = (trial) => make("tr", {}, make("th", {}, String(trial.number)), cell(trial.state), ...names.map((name) => cell(shortValue(trial.params[name] ?? "–"))),
    number(full(trial.env_steps)), number(full(trial.value)));
  return make("details", {}, make("summary", {}, `all ${trials.length} trials, best first`), table(head, sorted.map(row)));
}
