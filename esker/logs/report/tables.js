// Tables: the runs, how their configurations differ, what they ran on.

function table(head, rows, wrap = false) {
  const body = make("tbody", {}, ...rows);
  return make("div", { class: "scroll" + (wrap ? " wrap" : ""), tabindex: 0 }, make("table", {}, make("thead", {}, make("tr", {}, ...head)), body));
}

const cell = (text, attributes = {}) => make("td", attributes, text);
const number = (text) => make("td", { class: "number" }, text);

function runsTable(runs) {
  const head = ["run", "configuration", "seed", "status"].map((text) => make("th", {}, text));
  head.push(...["generations", "steps", "time", "best centre", "last centre"].map((text) => make("th", { class: "number" }, text)));
  head.push(make("th", { title: "machines that agree on it compute the same bits" }, "fingerprint"));
  return table(head, runs.map((run) => make("tr", {},
    make("th", {}, make("span", { class: "dot", color: colorOf(run) }), run.name),
    cell(DATA.groups[run.group].label), cell(String(run.seed)), make("td", {}, statusOf(run)),
    number(full(run.generations)), number(full(run.last.env_steps)), number(duration(run.last.wall_time)),
    number(full(run.best)), number(full(run.last.center_return)), cell(run.fingerprint ?? "–"))));
}

/** One word: a trial that a sweep gave up is pruned, a run whose seed another run has too is a repeat. */
function statusOf(run) {
  const word = run.copy ? "repeat" : run.status.startsWith("finished: pruned") ? "pruned" : run.status.split(":")[0];
  return make("span", { class: `status ${word}`, title: run.status }, word);
}

/** A row an option, a column a configuration; values that differ from the first one's are marked. */
function configTable(names) {
  const members = DATA.groups.map((_, group) => DATA.runs.filter((run) => run.group === group));
  const title = (group) => (environments().length > 1 ? `${DATA.groups[group].env}: ` : "") + DATA.groups[group].label;
  const head = [make("th", {}, "option"), ...members.map((_, group) => make("th", {}, make("span", { class: "dot", color: colorAt(group) }), title(group)))];
  return table(head, names.map((name) => {
    const values = members.map((runs) => [...new Set(runs.map((run) => run.config[name] ?? "–"))].join(" | "));
    const differs = new Set(values).size > 1;
    return make("tr", { class: differs ? "differs" : null }, make("th", {}, name),
      ...values.map((value) => cell(value, { class: differs && value !== values[0] ? "differs" : null })));
  }), true);
}

/** The packages; runs with the same versions share a column. */
function versionsTable(runs) {
  const sets = new Map();
  for (const run of runs) {
    const key = JSON.stringify(run.versions);
    sets.set(key, [...(sets.get(key) ?? []), run]);
  }
  const columns = [...sets.values()];
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.versions)))];
  const title = (some) => (columns.length === 1 ? "all runs" : some.map((run) => run.name).join(", "));
  return table([make("th", {}, "package"), ...columns.map((some) => make("th", {}, title(some)))], names.map((name) => {
    const values = columns.map(([run]) => String(run.versions[name] ?? "–"));
    const differs = new Set(values).size > 1;
    return make("tr", {}, make("th", {}, name), ...values.map((value) => cell(value, { class: differs ? "differs" : null })));
  }), true);
}
