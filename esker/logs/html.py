"""Small pieces of HTML for notebooks: numbers in a table, a curve, tables of results. Self-contained, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from esker.logs.text import number, stretches

WIDTH, HEIGHT = 420, 80
ROOMY = "padding:1px 18px 1px 0"


def facts(pairs: Iterable[tuple[str, str]], title: str = "") -> str:
    """Names and values below each other."""
    cell = f"<td style='text-align:left;{ROOMY}"
    rows = "".join(f"<tr>{cell};opacity:.65'>{escape(name)}</td>{cell}'>{escape(value)}</td></tr>" for name, value in pairs)
    heading = f"<div style='font-weight:600'>{escape(title)}</div>" if title else ""
    return f"{heading}<table>{rows}</table>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a line of headings."""
    every = [list(row) for row in rows]
    right = [bool(every) and all(_is_number(row[place]) for row in every) for place in range(len(headings))]
    head, *body = [
        "".join(
            f"<{tag} style='text-align:{'right' if right[place] else 'left'};{ROOMY}'>{escape(value)}</{tag}>"
            for place, value in enumerate(row)
        )
        for tag, row in [("th", headings), *(("td", row) for row in every)]
    ]
    lines = "".join(f"<tr>{line}</tr>" for line in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _is_number(text: str) -> bool:
    """Whether a cell holds a number, or a dash for none."""
    return text.replace(",", "").replace(".", "", 1).removeprefix("-").isdecimal() or text in ("–", "")


def curve(values: Sequence[float | None], label: str) -> str:
    """A line of values with its lowest and highest; nothing for fewer than two."""
    means = stretches(values, WIDTH // 2)
    if len(means) < 2:
        return ""
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    points = " ".join(
        f"{WIDTH * i / (len(means) - 1):.1f},{HEIGHT - 2 - (HEIGHT - 4) * (mean - low) / span:.1f}"
        for i, mean in enumerate(means)
    )
    line = f"<polyline points='{points}' fill='none' stroke='#0b6e99' stroke-width='2'/>"
    text = f"{escape(label)}: {number(low)} to {number(high)}"
    picture = f"<svg width='{WIDTH}' height='{HEIGHT}' role='img' aria-label='{text}'>{line}</svg>"
    return f"{picture}<div style='opacity:.65'>{text}</div>"
