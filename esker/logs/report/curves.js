// Curves: read from the data, smoothed, aggregated over seeds. A curve is { x: [...], y: [...] }.

/** A run's column against an axis, without the generations that lack it. */
function curveOf(run, column, axis) {
  const xs = run.curves[DATA.axis_columns[axis]];
  const ys = run.curves[column];
  const curve = { x: [], y: [] };
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
  return { x: curve.x, y };
}

/** Mean, lowest and highest of several curves over the stretch that all of them cover; null where there is none. */
function aggregate(curves, points = 400) {
  const some = curves.filter((curve) => curve.x.length);
  if (!some.length) return null;
  const first = Math.max(...some.map((curve) => curve.x[0]));
  const last = Math.min(...some.map((curve) => curve.x[curve.x.length - 1]));
  if (last < first) return null;
  let grid = [...new Set(some.flatMap((curve) => curve.x))].filter((x) => x >= first && x <= last).sort((a, b) => a - b);
  if (grid.length > points) grid = Array.from({ length: points }, (_, i) => first + ((last - first) * i) / (points - 1));
  const rows = some.map((curve) => interpolate(curve, grid));
  const over = (what) => grid.map((_, i) => what(rows.map((row) => row[i])));
  return {
    x: grid,
    mean: over((values) => values.reduce((a, b) => a + b, 0) / values.length),
    low: over((values) => Math.min(...values)),
    high: over((values) => Math.max(...values)),
  };
}

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
