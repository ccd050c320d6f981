"""Learning curves as small SVG files: the centre's return of every seed against simulated steps."""

from __future__ import annotations

from typing import Any

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 480, 236, 58, 34, 28
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#000000", "#7f7f7f", "#5c3d99")


def curve_svg(data: dict[str, Any]) -> str:
    """One line for each seed."""
    seeds = [(seed["seed"], seed["curve"]["env_steps"], seed["curve"]["center_return"]) for seed in data["seeds"]]
    points = [(x, y) for _, xs, ys in seeds for x, y in zip(xs, ys, strict=True) if y is not None]
    right, low, high = max(x for x, _ in points), min(y for _, y in points), max(y for _, y in points)
    span = (high - low) or 1.0

    def place(x: float, y: float) -> str:
        at = LEFT + (WIDTH - LEFT - 10) * x / right
        return f"{at:.1f},{TOP + (HEIGHT - TOP - BOTTOM) * (1 - (y - low) / span):.1f}"

    lines = []
    for number, (seed, xs, ys) in enumerate(seeds):
        path = " ".join(place(x, y) for x, y in zip(xs, ys, strict=True) if y is not None)
        colour = COLOURS[number % len(COLOURS)]
        title = f"<title>seed {seed}</title>"
        lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.4" points="{path}">{title}</polyline>')
    base = HEIGHT - BOTTOM
    labels = [
        text(LEFT - 6, TOP + 6, f"{high:,.0f}", "end"),
        text(LEFT - 6, base, f"{low:,.0f}", "end"),
        text(WIDTH - 10, base + 16, f"{right / 1e6:.1f}M simulated steps", "end"),
        text(LEFT, base + 16, "0", "start"),
        text(LEFT + 6, 16, f"{data['env']}, centre return by seed", "start"),
    ]
    frame = f'<path d="M{LEFT} {TOP}V{base}H{WIDTH - 10}" fill="none" stroke="#888"/>'
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', frame, *lines, *labels, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, anchor: str) -> str:
    """A label."""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="#333">{words}</text>'
