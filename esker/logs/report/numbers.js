// Numbers as people read them, and elements in one line.

/** A number short enough for an axis. */
function brief(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return trim(value / 1e9) + "G";
  if (size >= 1e6) return trim(value / 1e6) + "M";
  if (size >= 1e4) return trim(value / 1e3) + "k";
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return trim(value);
}

function trim(value) {
  return String(Number(value.toPrecision(4)));
}

/** A number in full, for tables and tips. */
function full(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-3) return value.toExponential(2);
  return value.toLocaleString("en", { maximumFractionDigits: size >= 1000 ? 0 : size >= 10 ? 1 : 4 });
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return trim(seconds) + " s";
  return seconds < 5400 ? trim(seconds / 60) + " min" : trim(seconds / 3600) + " h";
}

/** Round numbers that divide a range into about `count` parts. */
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((part) => part * power).find((size) => size >= rough * 0.999);
  const marks = [];
  for (let mark = Math.ceil(low / step - 1e-9); mark * step <= high + step * 1e-9; mark++) marks.push(mark * step);
  return marks;
}

/** An element with attributes and children; text goes in as text, never as HTML. */
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "line", "rect", "circle", "text"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "color") node.style.setProperty("--color", value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
