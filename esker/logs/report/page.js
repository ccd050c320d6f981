// The page: toolbar, a section for each environment, tables, videos; and following a live run.

let DATA = JSON.parse(document.getElementById("data").textContent);
const state = { axis: "steps", seeds: true, mean: false, range: false, smoothing: 0, hidden: new Set(), hiddenGroups: new Set() };
const FEW = 6; // of more configurations than this, only this many are shown at first
const views = new Map(); // environment -> view; zoom survives a redraw

const byId = (id) => document.getElementById(id);
const colorAt = (group) => `var(--c${DATA.groups.slice(0, group).filter((other) => other.env === DATA.groups[group].env).length % 10})`;
const colorOf = (run) => colorAt(run.group);
const environments = () => [...new Set(DATA.groups.map((group) => group.env))];
const shown = (group) => DATA.runs.filter((run) => run.group === group && !run.copy && !state.hidden.has(run.name) && !state.hiddenGroups.has(groupKey(group)));
const groupKey = (group) => `${DATA.groups[group].env} ${DATA.groups[group].label}`;
const groupsOf = (env) => DATA.groups.flatMap((group, number) => (group.env === env ? [number] : []));

const AVERAGES = { mean: "mean", iqm: "interquartile mean" };

/** Lines of one column: each configuration's average over its visible seeds with its band, and the seeds themselves. */
function linesOf(env, column, { members = false } = {}) {
  const series = [];
  for (const group of groupsOf(env)) {
    const runs = shown(group);
    if (!runs.length) continue;
    const color = colorAt(group);
    const label = DATA.groups[group].label;
    const curves = runs.map((run) => smooth(curveOf(run, column, state.axis), state.smoothing));
    const whole = aggregate(curves, averageOf(env));
    if (members) series.push(...membersOf(runs, color));
    if (runs.length > 1 && whole) series.push({ label: `${label}: band`, x: whole.x, ...whole.interval, color, quiet: true });
    if (runs.length > 1 && state.seeds) {
      runs.forEach((run, i) => series.push({ label: run.name, ...curves[i], color, width: 1, opacity: 0.45, quiet: true }));
    }
    if (whole) series.push({ label: runs.length > 1 ? `${label}: ${AVERAGES[whole.kind]} of ${runs.length} seeds` : label, x: whole.x, y: whole.average, color, width: 2.2,
      range: runs.length > 1 ? whole.interval : null, carried: whole.carried });
  }
  return members ? [...series, ...referencesOf(env, series)] : series;
}

const referencesIn = (env) => DATA.references.filter((one) => one.env === null || one.env === env);

/** Horizontal lines to compare with, as wide as the curves. */
function referencesOf(env, series) {
  const xs = series.flatMap((one) => [one.x[0], one.x[one.x.length - 1]]).filter((x) => x !== undefined);
  if (!xs.length) return [];
  const x = [Math.min(0, ...xs), Math.max(...xs)];
  return referencesIn(env).map((one) => ({ label: `reference ${one.name || full(one.value)}`, x, y: [one.value, one.value],
    color: "var(--ink)", width: 1.2, opacity: 0.7, dash: "2 3", quiet: true }));
}

/** One kind of average for all lines of an environment: the interquartile mean where each has seeds enough for it. */
function averageOf(env) {
  const counts = groupsOf(env).map((group) => shown(group).length).filter((count) => count > 1);
  return counts.length && Math.min(...counts) >= MANY_SEEDS ? "iqm" : "mean";
}

/** What the lines of the return's chart mean, as they are drawn now. */
function returnKey(env, lines) {
  const groups = groupsOf(env).map((group) => shown(group).length).filter(Boolean);
  if (!groups.length) return [];
  const several = Math.max(...groups) > 1, carried = lines.reduce((sum, line) => sum + (line.carried ?? 0), 0);
  const key = [["line", several ? `centre return, ${AVERAGES[averageOf(env)]} over seeds` : "centre return"]];
  if (several && state.seeds) key.push(["thin", "each seed"]);
  if (several) key.push(["shade", averageOf(env) === "iqm" ? "95% bootstrap interval" : "worst to best seed"]);
  if (state.mean) key.push(["dashed", "mean of members"]);
  if (state.range) key.push(["pale", "worst to best member"]);
  for (const one of referencesIn(env)) key.push(["dotted", one.name ? `${one.name}: ${full(one.value)}` : full(one.value)]);
  if (carried) key.push(["none", `${carried} ${carried > 1 ? "seeds" : "seed"} carried on after the goal, at the last value`]);
  return key;
}

/** The members of the population around the centre: their mean, and the band from the worst to the best. */
function membersOf(runs, color) {
  const over = (column) => aggregate(runs.map((run) => smooth(curveOf(run, column, state.axis), state.smoothing)), "mean");
  const [mean, low, high] = ["return_mean", "return_min", "return_max"].map(over);
  const series = [];
  if (state.range && low && high) series.push({ label: "worst to best member", x: low.x, low: low.average, high: interpolate({ x: high.x, y: high.average }, low.x), color, opacity: 0.1 });
  if (state.mean && mean) series.push({ label: "mean of members", x: mean.x, y: mean.average, color, width: 1.5, dash: "5 4" });
  return series;
}

/** Ribbons of a run's fitness quantiles, with the centre on top. */
function ribbonsOf(run) {
  const spread = run && run.distribution;
  if (!spread) return [];
  const x = spread[DATA.axis_columns[state.axis]];
  const color = colorOf(run);
  const ribbon = (a, b, label, opacity) => ({ label, x, low: spread.levels[a], high: spread.levels[b], color, opacity });
  const series = [ribbon(0, 6, "all members", 0.12), ribbon(1, 5, "10 % to 90 %", 0.18), ribbon(2, 4, "25 % to 75 %", 0.28),
    { label: "median", x, y: spread.levels[3], color, width: 1.6 }];
  if (!spread.signs) series.push({ label: "centre", ...curveOf(run, "center_return", state.axis), color: "var(--ink)", width: 1.3, dash: "2 3" });
  return series;
}

function section(env) {
  if (!views.has(env)) views.set(env, newView());
  const view = views.get(env);
  view.charts = [];
  const runs = DATA.runs.filter((run) => DATA.groups[run.group].env === env);
  const charts = make("div", { class: "charts" });
  const add = (options) => charts.append(new Chart(view, options).node);
  const values = (column) => new Set(runs.flatMap((run) => run.curves[column].filter((value) => value !== null))).size;
  if (values("center_return")) {
    const series = () => linesOf(env, "center_return", { members: true });
    add({ title: "Return", note: "centre: mean of its episodes", wide: true, height: Math.min(380, 240 + innerWidth / 10), series, key: () => returnKey(env, series()) });
  }
  distributionChart(add, runs, view);
  if (values("center_rank")) add({ title: "Centre rank", note: "1: no member beats the centre", series: () => linesOf(env, "center_rank") });
  if (values("steps_per_second")) add({ title: "Steps per second", series: () => linesOf(env, "steps_per_second") });
  for (const column of CHANGING) if (values(column) > 1) add({ title: DATA.columns[column], series: () => linesOf(env, column) });
  const title = environments().length > 1 ? make("h2", {}, env) : make("h2", {}, "Learning");
  return make("section", { "data-env": env }, title, remarks(env, runs), tiles(env), legend(env), charts);
}

// Columns that are drawn where they change at all.
const CHANGING = ["critic_loss", "actor_loss", "rl_share", "episode_length_mean", "return_std", "gradient_norm", "update_ratio", "sigma"];

/** What a reader should know before believing the curves: copies among the seeds, and training that stalled. */
function remarks(env, runs) {
  const stalled = runs.filter((run) => run.stalls.length).map((run) => {
    const [generation, text] = run.stalls[run.stalls.length - 1];
    return `${run.name}, generation ${full(generation)}: ${text}`;
  });
  const all = [...groupsOf(env).flatMap((group) => DATA.groups[group].notes), ...stalled.slice(0, FEW)];
  if (stalled.length > FEW) all.push(`${stalled.length - FEW} more runs stalled`);
  return all.length ? make("ul", { class: "remarks" }, ...all.map((text) => make("li", {}, text))) : null;
}

function distributionChart(add, runs, view) {
  const known = runs.filter((run) => run.distribution);
  if (!known.length) return;
  view.chosen = known.some((run) => run.name === view.chosen) ? view.chosen : known[0].name;
  const options = known.map((run) => make("option", { value: run.name, selected: run.name === view.chosen }, run.name));
  const control = known.length === 1 ? null : make("select", { "aria-label": "run whose distribution is shown" }, ...options);
  const chosen = () => DATA.runs.find((run) => run.name === view.chosen);
  const key = () => [["line", "median member"], ["shade", "members: 25 to 75%, 10 to 90%, all"], ...(chosen()?.distribution?.signs ? [] : [["dotted", "centre"]])];
  add({ title: "Fitness distribution", note: "quantiles of the members", wide: true, height: 240, control, key, series: () => ribbonsOf(chosen()) });
  const chart = view.charts[view.charts.length - 1];
  control?.addEventListener("change", () => { view.chosen = control.value; chart.draw(); });
}

/** A tile for each configuration with the number people ask for first; a single run has room for more. */
function tiles(env) {
  const groups = groupsOf(env);
  const runs = DATA.runs.filter((run) => groups.includes(run.group));
  const tiles = [...groups.filter((group) => groups.length <= FEW || shown(group).length).map(groupTile), ...(runs.length === 1 ? runTiles(runs[0]) : [])];
  const several = groups.some((group) => DATA.groups[group].summary?.seeds > 1);
  return make("div", { class: "summary" }, make("div", { class: "tiles" }, ...tiles),
    several ? make("p", { class: "soft" }, "Best centre return of each seed: interquartile mean and its 95% bootstrap interval.") : null);
}

/** A sweep has too many configurations to tell apart: begin with its best, the others are a click away. */
function hideAllButBest(env) {
  const best = (group) => Math.max(...DATA.runs.filter((run) => run.group === group).map((run) => run.best ?? -Infinity));
  const groups = groupsOf(env).sort((a, b) => best(b) - best(a));
  if (groups.length > FEW) for (const group of groups.slice(FEW)) state.hiddenGroups.add(groupKey(group));
}

function groupTile(group) {
  const { label, summary, seeds } = DATA.groups[group];
  const total = DATA.runs.filter((run) => run.group === group).reduce((sum, run) => sum + (run.last.env_steps ?? 0), 0);
  const several = summary && summary.seeds > 1;
  const about = several ? `median ${full(summary.median)} · worst ${full(summary.worst)} · ${seeds}` : "best centre return";
  return make("div", { class: "card tile" + (shown(group).length ? "" : " off"), color: colorAt(group) }, make("span", { class: "soft" }, label),
    make("b", several ? { title: "best centre return: interquartile mean and its 95% bootstrap interval" } : {}, summary ? full(summary.iqm) : "–",
      several ? make("small", {}, ` ${full(summary.low)} to ${full(summary.high)}`) : null),
    make("span", { class: "soft" }, `${about} · ${brief(total)} steps`));
}

function runTiles(run) {
  const tile = (label, value, note) => make("div", { class: "card tile", color: "var(--line)" }, make("span", { class: "soft" }, label), make("b", {}, value), make("span", { class: "soft" }, note));
  const speed = run.last.wall_time ? `${full(Math.round(run.last.env_steps / run.last.wall_time))} a second` : "";
  return [tile("generations", full(run.generations), run.status), tile("environment steps", full(run.last.env_steps), speed),
    tile("training time", duration(run.last.wall_time), `${full(run.last.episodes)} episodes`)];
}

function legend(env) {
  const chips = [];
  for (const group of groupsOf(env)) {
    const runs = DATA.runs.filter((run) => run.group === group && !run.copy);
    chips.push(chip(DATA.groups[group].label, "", colorAt(group), state.hiddenGroups, groupKey(group)));
    if (runs.length > 1) for (const run of runs) chips.push(chip(`seed ${run.seed}`, "seed", colorAt(group), state.hidden, run.name));
  }
  return make("div", { class: "legend", role: "group", "aria-label": "runs shown" }, ...chips);
}

function chip(text, kind, color, hidden, key) {
  return make("button", { type: "button", class: `chip ${kind}`, color, "aria-pressed": String(!hidden.has(key)), "data-key": key,
    onclick: () => { if (!hidden.delete(key)) hidden.add(key); render(); } }, text);
}

const AXIS_NAMES = { steps: "steps", training: "training steps", episodes: "episodes", generations: "generations", time: "wall-clock" };
const hasAxis = (axis) => DATA.runs.some((run) => run.curves[DATA.axis_columns[axis]].some((value) => value !== null));

function toolbar() {
  const segment = (axis, text) => make("button", { type: "button", "aria-pressed": String(state.axis === axis), "data-axis": axis,
    onclick: () => { state.axis = axis; for (const view of views.values()) Object.assign(view, { zoom: null, cursor: null }); render(); } }, text);
  const tick = (name, text) => make("label", {}, make("input", { type: "checkbox", checked: state[name], "data-tick": name,
    onchange: (event) => { state[name] = event.target.checked; redraw(); } }), text);
  const slider = make("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: state.smoothing, "aria-label": "smoothing",
    oninput: (event) => { state.smoothing = Number(event.target.value); redraw(); } });
  byId("toolbar").replaceChildren(
    make("span", { class: "segments", role: "group", "aria-label": "x-axis" }, ...Object.keys(AXIS_NAMES).filter(hasAxis).map((axis) => segment(axis, AXIS_NAMES[axis]))),
    ...(DATA.runs.length > DATA.groups.length ? [tick("seeds", "each seed")] : []),
    tick("mean", "mean of members"), tick("range", "worst to best"), make("label", {}, "smoothing", slider));
}

function redraw() {
  for (const view of views.values()) for (const chart of view.charts) chart.draw();
}

function configuration() {
  const all = [...new Set(DATA.runs.flatMap((run) => Object.keys(run.config)))];
  const parts = [make("h2", {}, "Configuration")];
  if (DATA.differing.length) parts.push(make("p", { class: "soft" }, `${DATA.differing.length} of ${all.length} options differ between configurations; what is unlike the first is marked.`), configTable(DATA.differing));
  else if (DATA.runs.length > 1) parts.push(make("p", { class: "soft" }, "The runs differ in their seeds only."));
  parts.push(make("details", {}, make("summary", {}, `all ${all.length} options`), configTable(all)));
  return make("section", { id: "configuration" }, ...parts);
}

function videos() {
  const known = DATA.runs.filter((run) => run.video);
  if (!known.length) return null;
  return make("section", { id: "videos" }, make("h2", {}, "Videos"), make("div", { class: "videos" }, ...known.map((run) =>
    make("figure", { class: "card" }, make("video", { controls: true, muted: true, loop: true, playsinline: true, preload: "metadata", src: run.video.source }),
      make("figcaption", {}, make("span", { class: "dot", color: colorOf(run) }), `${run.name}: ${run.video.name.replaceAll("-", " ")}`)))));
}

function headline() {
  const names = environments();
  byId("title").textContent = names.length === 1 ? names[0] : `${names.length} environments`;
  document.title = `${byId("title").textContent} · esker report`;
  const seeds = DATA.runs.length === 1 ? "1 run" : `${DATA.runs.length} runs`;
  const kinds = DATA.groups.length === 1 ? "1 configuration" : `${DATA.groups.length} configurations`;
  byId("subtitle").textContent = `${seeds} of ${kinds} · ${DATA.live ? "live, seen" : "written"} ${DATA.written}`;
  byId("footer").textContent = `esker ${DATA.esker}. Drag across a chart to zoom, double-click to see all; arrow keys move the cursor. ` +
    "An average over seeds ends where the shortest of them ends; seeds that stopped at their goal are carried on at their last value.";
}

function render() {
  headline();
  toolbar();
  const from = scrollY;
  const parts = environments().map(section);
  if (!DATA.runs.some((run) => run.generations)) parts.unshift(make("p", { class: "empty" }, "No generation has been committed yet."));
  byId("main").replaceChildren(...sweepSections(), ...parts, ...[videos()].filter(Boolean), runsSection(), configuration(),
    make("section", { id: "versions" }, make("h2", {}, "Versions"), versionsTable(DATA.runs)));
  redraw();
  scrollTo(0, from);
}

/** The newest numbers in the page as it stands; charts and videos stay where they are. */
function refresh() {
  headline();
  redraw();
  byId("runs").replaceWith(runsSection());
  for (const env of environments()) document.querySelector(`section[data-env="${CSS.escape(env)}"] .summary`).replaceWith(tiles(env));
}

const runsSection = () => make("section", { id: "runs" }, make("h2", {}, "Runs"), runsTable(DATA.runs));

function theme() {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("esker-theme"); } catch { /* a page from a file may have no storage */ }
  const apply = () => {
    root.dataset.theme = chosen ?? (dark.matches ? "dark" : "light");
    byId("theme").textContent = root.dataset.theme === "dark" ? "☀" : "☾";
  };
  dark.addEventListener("change", apply);
  byId("theme").addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("esker-theme", chosen); } catch { /* then it lasts as long as the page */ }
    apply();
  });
  apply();
}

/** Ask the server for news; what the reader zoomed, hid or chose stays. */
async function follow() {
  try {
    const response = await fetch("data.json", { cache: "no-store" });
    const text = await response.text();
    if (response.ok && text !== follow.last) {
      follow.last = text;
      const news = JSON.parse(text);
      const shape = (data) => JSON.stringify([data.groups, data.runs.map((run) => [run.name, Boolean(run.generations), run.video?.name])]);
      const same = shape(news) === shape(DATA);
      DATA = news;
      if (same) refresh();
      else render();
    }
  } catch { byId("subtitle").textContent = "the server has stopped; what is shown stays"; }
  setTimeout(follow, 2000);
}

for (const env of environments()) hideAllButBest(env);
if (DATA.runs.every((run) => run.curves.training_steps.some((value) => value !== null))) state.axis = "training";
if (DATA.groups.length === 1) Object.assign(state, { mean: true, range: true });
theme();
render();
if (DATA.live) follow();
