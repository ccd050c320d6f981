// A chart in SVG: lines and bands, a cursor with values, drag to zoom, double-click to see all again.
// Charts of one environment share a view: the part of the x-axis shown, and where the cursor is.

const MARGIN = { left: 52, right: 12, top: 8, bottom: 26 };

function newView() {
  return { zoom: null, cursor: null, charts: [] };
}

/** A piece of a line or band, to stand before its meaning. */
function sample(kind) {
  if (kind === "none") return null;
  const styles = { line: { "stroke-width": 2.4 }, thin: { "stroke-width": 1, opacity: 0.6 }, dashed: { "stroke-width": 1.6, "stroke-dasharray": "5 4" },
    dotted: { "stroke-width": 1.6, "stroke-dasharray": "2 3" } };
  const mark = styles[kind] ? make("path", { d: "M1,6H25", ...styles[kind] }) : make("rect", { x: 1, y: 1, width: 24, height: 10, opacity: { shade: 0.28, pale: 0.16 }[kind] });
  return make("svg", { class: "sample", width: 26, height: 12, "aria-hidden": "true" }, mark);
}

class Chart {
  /** `series()` returns the lines and bands to draw, `key()` what they mean; `height` is in pixels. */
  constructor(view, { title, note = "", series, key = () => [], height = 200, wide = false, control = null }) {
    Object.assign(this, { view, series, key, height, drawn: [] });
    this.svg = make("svg", { tabindex: 0, role: "img", "aria-label": title });
    this.note = make("span", { class: "soft" }, note);
    this.tip = make("div", { class: "tip", hidden: true, role: "status" });
    this.reset = make("button", { class: "reset", type: "button", hidden: true, onclick: () => this.zoomTo(null) }, "show all");
    this.keys = make("div", { class: "key" });
    const head = make("div", { class: "head" }, make("h3", {}, title), control || this.note);
    this.node = make("div", { class: "card chart" + (wide ? " wide" : "") }, head, this.svg, this.keys, this.reset, this.tip);
    view.charts.push(this);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  listen() {
    const at = (event) => this.toX(event.clientX - this.svg.getBoundingClientRect().left);
    let start = null;
    this.svg.addEventListener("pointerdown", (event) => {
      start = event.clientX;
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      this.select(start !== null && Math.abs(event.clientX - start) > 5 ? [start, event.clientX] : null);
      this.point(at(event));
    });
    this.svg.addEventListener("pointerup", (event) => {
      const box = this.svg.getBoundingClientRect();
      if (start !== null && Math.abs(event.clientX - start) > 5) {
        this.zoomTo([start, event.clientX].map((x) => this.toX(x - box.left)).sort((a, b) => a - b));
      }
      start = null;
      this.select(null);
      this.point(at(event));
    });
    this.svg.addEventListener("pointercancel", () => { start = null; this.select(null); });
    this.svg.addEventListener("pointerleave", () => { if (start === null) this.point(null); });
    this.svg.addEventListener("blur", () => this.point(null));
    this.svg.addEventListener("dblclick", () => this.zoomTo(null));
    this.svg.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.zoomTo(null);
    if (!steps || !this.range) return;
    event.preventDefault();
    const all = [...new Set(this.drawn.filter((one) => !one.quiet).flatMap((one) => one.x))].sort((a, b) => a - b);
    const at = this.view.cursor === null ? Math.floor(all.length / 2) : nearest(all, this.view.cursor) + steps;
    this.point(all[Math.min(all.length - 1, Math.max(0, at))]);
  }

  zoomTo(range) {
    this.view.zoom = range;
    for (const chart of this.view.charts) chart.draw();
  }

  /** Draw everything anew from `series()`. */
  draw() {
    const width = Math.max(160, this.svg.clientWidth || this.node.clientWidth - 28);
    this.width = width;
    this.drawn = this.series().filter((one) => one.x.length);
    this.range = this.extent();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    this.reset.hidden = !this.view.zoom;
    this.keys.replaceChildren(...this.key().map(([kind, text]) => make("span", {}, sample(kind), text)));
    if (!this.range) {
      this.svg.replaceChildren(make("text", { x: width / 2, y: this.height / 2, "text-anchor": "middle" }, "nothing to show"));
      return;
    }
    this.plot = make("g");
    const bands = this.drawn.filter((one) => one.low), lines = this.drawn.filter((one) => one.y);
    for (const band of bands) this.plot.append(make("path", { d: this.area(band), style: `fill: ${band.color}`, opacity: band.opacity ?? 0.18 }));
    for (const line of lines) if (line.x.length === 1) this.plot.append(make("circle", { cx: this.toPixelX(line.x[0]), cy: this.toPixelY(line.y[0]), r: 4, style: `fill: ${line.color}` }));
    for (const line of lines) this.plot.append(make("path", { class: "line", d: this.path(line.x, line.y), style: `stroke: ${line.color}`,
      "stroke-width": line.width ?? 2, opacity: line.opacity ?? 1, "stroke-dasharray": line.dash ?? null, "data-label": line.label }));
    this.overlay = make("g", {});
    this.selection = make("rect", { class: "selection", y: MARGIN.top, height: this.height - MARGIN.top - MARGIN.bottom, width: 0 });
    const frame = make("svg", { x: MARGIN.left, y: MARGIN.top, width: width - MARGIN.left - MARGIN.right, height: this.height - MARGIN.top - MARGIN.bottom,
      viewBox: `${MARGIN.left} ${MARGIN.top} ${width - MARGIN.left - MARGIN.right} ${this.height - MARGIN.top - MARGIN.bottom}` }, this.plot);
    this.svg.replaceChildren(...this.axes(), frame, this.selection, this.overlay);
    this.showCursor();
  }

  /** What is shown: x from the zoom or all there is, y from what lies inside it. */
  extent() {
    const xs = this.drawn.flatMap((one) => [one.x[0], one.x[one.x.length - 1]]);
    if (!xs.length) return null;
    let [left, right] = this.view.zoom ?? [Math.min(0, ...xs), Math.max(...xs)];
    if (left === right) [left, right] = [left - 0.5, right + 0.5];
    if (!this.view.zoom && this.drawn.some((one) => one.x.length === 1)) right += (right - left) * 0.02; // room for a point
    let low = Infinity, high = -Infinity;
    for (const one of this.drawn) {
      one.x.forEach((x, i) => {
        if (x < left || x > right) return;
        low = Math.min(low, one.y ? one.y[i] : one.low[i]);
        high = Math.max(high, one.y ? one.y[i] : one.high[i]);
      });
    }
    if (low > high) return null;
    const room = (high - low || Math.abs(high) || 1) * 0.05;
    return { x: [left, right], y: [low - room, high + room] };
  }

  axes() {
    const { x: [left, right], y: [low, high] } = this.range;
    const bottom = this.height - MARGIN.bottom;
    const marks = [];
    for (const value of ticks(low, high, this.height / 48)) {
      const y = this.toPixelY(value);
      marks.push(make("line", { class: "grid", x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y, y2: y }));
      marks.push(make("text", { x: MARGIN.left - 7, y: y + 4, "text-anchor": "end" }, brief(value)));
    }
    const show = state.axis === "time" ? duration : brief;
    for (const value of ticks(left, right, this.width / 80)) {
      const x = this.toPixelX(value);
      const anchor = x > this.width - 40 ? "end" : "middle";
      marks.push(make("text", { x: anchor === "end" ? this.width - 4 : x, y: bottom + 17, "text-anchor": anchor }, show(value)));
    }
    marks.push(make("line", { class: "axis", x1: MARGIN.left, x2: this.width - MARGIN.right, y1: bottom, y2: bottom }));
    return marks;
  }

  toPixelX(x) {
    const [left, right] = this.range.x;
    return MARGIN.left + ((x - left) / (right - left)) * (this.width - MARGIN.left - MARGIN.right);
  }

  toPixelY(y) {
    const [low, high] = this.range.y;
    return this.height - MARGIN.bottom - ((y - low) / (high - low)) * (this.height - MARGIN.top - MARGIN.bottom);
  }

  toX(pixel) {
    if (!this.range) return null;
    const [left, right] = this.range.x;
    const part = (pixel - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right);
    return left + Math.min(1, Math.max(0, part)) * (right - left);
  }

  path(xs, ys) {
    return "M" + xs.map((x, i) => `${this.toPixelX(x).toFixed(1)},${this.toPixelY(ys[i]).toFixed(1)}`).join("L");
  }

  area(band) {
    const back = band.x.map((_, i) => band.x.length - 1 - i);
    return this.path(band.x, band.high) + "L" + this.path(back.map((i) => band.x[i]), back.map((i) => band.low[i])).slice(1) + "Z";
  }

  select(pixels) {
    if (!this.selection) return;
    const box = this.svg.getBoundingClientRect();
    const [from, to] = pixels ? pixels.map((x) => Math.min(this.width - MARGIN.right, Math.max(MARGIN.left, x - box.left))).sort((a, b) => a - b) : [0, 0];
    this.selection.setAttribute("x", from);
    this.selection.setAttribute("width", to - from);
  }

  /** Put the cursor at the generation nearest to x in every chart of the view; only this one shows the values. */
  point(x) {
    const near = x === null ? [] : this.drawn.filter((one) => !one.quiet).map((one) => one.x[nearest(one.x, x)]);
    this.view.cursor = near.length ? near.reduce((best, at) => (Math.abs(at - x) < Math.abs(best - x) ? at : best)) : null;
    this.view.pointed = this;
    for (const chart of this.view.charts) chart.showCursor();
  }

  showCursor() {
    const x = this.view.cursor;
    this.tip.hidden = true;
    if (!this.overlay) return;
    if (x === null || !this.range) {
      this.overlay.replaceChildren();
      return;
    }
    const pixel = this.toPixelX(x);
    const marks = [make("line", { class: "cursor", x1: pixel, x2: pixel, y1: MARGIN.top, y2: this.height - MARGIN.bottom })];
    const rows = [];
    for (const one of this.drawn) {
      if (one.quiet) continue;
      const i = nearest(one.x, x);
      if (one.y) marks.push(make("circle", { cx: this.toPixelX(one.x[i]), cy: this.toPixelY(one.y[i]), r: 3.2, style: `fill: ${one.color}` }));
      const span = one.low ? one : one.range;
      const between = span ? `${full(span.low[i])} to ${full(span.high[i])}` : "";
      rows.push([one.color, one.label, one.y ? full(one.y[i]) + (between && ` (${between})`) : between]);
    }
    this.overlay.replaceChildren(...marks.filter((mark) => !(mark.getAttribute("cx") < MARGIN.left)));
    if (this.view.pointed === this) this.showTip(x, pixel, rows);
  }

  showTip(x, pixel, rows) {
    const show = state.axis === "time" ? duration : full;
    const lines = rows.slice(0, 14).map(([color, label, value]) =>
      make("div", {}, make("i", { color }), make("span", {}, label), make("b", {}, value)));
    this.tip.replaceChildren(make("div", {}, make("span", { class: "soft" }, `${DATA.axes[state.axis]}: `), make("b", {}, show(state.axis === "time" ? x : Math.round(x)))), ...lines);
    this.tip.hidden = false;
    const right = pixel > this.width / 2;
    this.tip.style.left = right ? "" : `${pixel + 26}px`;
    this.tip.style.right = right ? `${this.width - pixel + 26}px` : "";
    this.tip.style.top = "44px";
  }
}
