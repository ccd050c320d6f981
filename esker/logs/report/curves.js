// Curves: read from the data, smoothed, aggregated over seeds. A curve is { x: [...], y: [...], ended }, where `ended`
// says that the run stopped at its goal, so that its last value stands for what follows.

const MANY_SEEDS = 5; // from here on the interquartile mean is drawn, with its interval
const RESAMPLES = 500;

/** A run's column against an axis, without the generations that lack it. */
function curveOf(run, column, axis) {
  const source = column === "center_return" ? run.centers : run.curves;
  const xs = source[DATA.axis_columns[axis]];
  const ys = source[column];
  const curve = { x: [], y: [], ended: run.ended && DATA.lasting.includes(column) };
  xs.forEach((x, i) => {
    if (x !== null && ys[i] !== null && ys[i] !== undefined) {
      curve.x.push(x);
      curve.y.push(ys[i]);
    }
  });
  return curve;
}

/** An exponential mean, unbiased at the start; `strength` 0 leaves the curve as it is. */
function smooth(curve, strength) {
  if (!strength) return curve;
  let sum = 0, weight = 0;
  const y = curve.y.map((value) => {
    sum = strength * sum + (1 - strength) * value;
    weight = strength * weight + (1 - strength);
    return sum / weight;
  });
  return { ...curve, y };
}

/** Where every seed has a value: to the end of the shortest that did not reach its goal. */
function commonGrid(curves, points = 400) {
  const unfinished = curves.filter((curve) => !curve.ended).map((curve) => curve.x[curve.x.length - 1]);
  const first = Math.max(...curves.map((curve) => curve.x[0]));
  const last = unfinished.length ? Math.min(...unfinished) : Math.max(...curves.map((curve) => curve.x[curve.x.length - 1]));
  if (last < first) return null;
  const grid = [...new Set(curves.flatMap((curve) => curve.x))].filter((x) => x >= first && x <= last).sort((a, b) => a - b);
  return grid.length > points ? Array.from({ length: points }, (_, i) => first + ((last - first) * i) / (points - 1)) : grid;
}

/** The average of several curves, the lowest and highest of them; with many, the interquartile mean and its interval. */
function aggregate(curves, average = null) {
  const some = curves.filter((curve) => curve.x.length);
  const grid = some.length ? commonGrid(some) : null;
  if (!grid) return null;
  const kind = average ?? (some.length >= MANY_SEEDS ? "iqm" : "mean");
  const rows = some.map((curve) => interpolate(curve, grid));
  const columns = grid.map((_, i) => rows.map((row) => row[i]).sort((a, b) => a - b));
  const low = columns.map((column) => column[0]), high = columns.map((column) => column[column.length - 1]);
  const interval = kind === "iqm" && some.length > 1 ? bootstrap(rows, grid.length) : { low, high };
  return { x: grid, kind, average: columns.map(kind === "iqm" ? middleMean : mean), low, high, interval,
    carried: some.filter((curve) => curve.ended && curve.x[curve.x.length - 1] < grid[grid.length - 1]).length };
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

/** The interquartile mean of sorted values: a quarter of them is cut from each end. */
function middleMean(sorted) {
  const cut = Math.floor(sorted.length / 4);
  return mean(sorted.slice(cut, sorted.length - cut));
}

/** The 95% bootstrap interval of the interquartile mean at every point; the same seeds are drawn for all points. */
function bootstrap(rows, length) {
  let seed = 1;
  const draw = () => (seed = (seed * 48271) % 2147483647) / 2147483647; // Park and Miller's generator: equal pages for equal runs
  const picks = Array.from({ length: RESAMPLES }, () => rows.map(() => Math.floor(draw() * rows.length)));
  const interval = { low: [], high: [] };
  for (let i = 0; i < length; i++) {
    const found = picks.map((pick) => middleMean(pick.map((j) => rows[j][i]).sort((a, b) => a - b))).sort((a, b) => a - b);
    interval.low.push(found[Math.floor(0.025 * (RESAMPLES - 1))]);
    interval.high.push(found[Math.ceil(0.975 * (RESAMPLES - 1))]);
  }
  return interval;
}

/** The values of a curve on a grid; beyond its end its last value. */
function interpolate(curve, grid) {
  let at = 0;
  return grid.map((x) => {
    while (at < curve.x.length - 2 && curve.x[at + 1] < x) at++;
    if (curve.x.length === 1 || x <= curve.x[at]) return curve.y[at];
    const part = Math.min(1, (x - curve.x[at]) / (curve.x[at + 1] - curve.x[at] || 1));
    return curve.y[at] + part * (curve.y[at + 1] - curve.y[at]);
  });
}

/** The index of the value nearest to x in an ascending list. */
function nearest(list, x) {
  let low = 0, high = list.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (list[middle] < x) low = middle;
    else high = middle;
  }
  return high >= 0 && Math.abs(list[low] - x) <= Math.abs(list[high] - x) ? low : high;
}
