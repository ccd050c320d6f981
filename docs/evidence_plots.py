"""The plot beside other libraries: seconds of an update against the numbers that its population has."""

from __future__ import annotations

import math
from typing import Any

from evidence_curves import BOTTOM, COLOURS, HEIGHT, LEFT, TOP, WIDTH, text

RIGHT = WIDTH - 90  # room for the names


def updates_svg(rows: list[dict[str, Any]]) -> str:
    """One line for each library, both axes logarithmic."""
    names = list(rows[0]["seconds"])
    points = {
        name: sorted((row["population"] * row["dimension"], row["seconds"][name]) for row in rows if row["seconds"][name])
        for name in names
    }
    xs, ys = zip(*(point for line in points.values() for point in line), strict=True)
    left, right, low, high = (math.log10(value) for value in (min(xs), max(xs), min(ys), max(ys)))
    base = HEIGHT - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (RIGHT - LEFT) * (math.log10(x) - left) / (right - left)
        return across, base - (base - TOP) * (math.log10(y) - low) / (high - low)

    drawn = []
    for number, (name, line) in enumerate(points.items()):
        colour = COLOURS[number]
        places = [place(*point) for point in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" points="{path}"/>')
        key = RIGHT + 14, TOP + 18 * number
        drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in [*places, key]]
        drawn.append(text(key[0] + 8, key[1] + 4, name, "start"))
    labels = [
        text(LEFT - 6, TOP + 6, f"{max(ys):.3g} s", "end"),
        text(LEFT - 6, base, f"{min(ys):.1g} s", "end"),
        text(LEFT, base + 16, f"{min(xs):,.0f}", "start"),
        text(RIGHT, base + 16, f"{max(xs):,.0f} numbers", "end"),
        text(LEFT + 6, 16, "one update: seconds against members × parameters", "start"),
    ]
    frame = f'<path d="M{LEFT} {TOP}V{base}H{RIGHT}" fill="none" stroke="#888"/>'
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="#fff"/>', frame, *drawn, *labels, "</svg>"]) + "\n"
