"""Numbers, durations and curves as text, for consoles and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

BARS = "▁▂▃▄▅▆▇█"


def number(value: float | None) -> str:
    """A return, short."""
    return "–" if value is None else f"{value:,.1f}"


def rank_text(row: dict[str, Any]) -> str:
    """The centre's rank among its members; none where a cap cut their episodes, and not the centre's."""
    rank = row["center_rank"]
    return "–" if rank is None else f"{rank} of {row['members'] + 1}"


def duration(seconds: float) -> str:
    """A duration as text: 5s, 3m 05s, 2h 10m."""
    if math.isinf(seconds):
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def age(seconds: float) -> str:
    """A time ago in its largest unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.0f}s"


def rate(row: dict[str, Any]) -> str:
    """Steps per second of one generation."""
    return f"{row['steps_per_second']:,.0f}/s" if row["steps_per_second"] else "?/s"


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The curve in one line, each character the mean of a stretch; empty for fewer than two values."""
    means = stretches(values, width)
    if len(means) < 2:
        return ""
    low, span = min(means), (max(means) - min(means)) or 1.0
    return "".join(BARS[round((mean - low) / span * (len(BARS) - 1))] for mean in means)


def stretches(values: Sequence[float | None], width: int) -> list[float]:
    """The means of at most `width` stretches of equal length, unknown values left out."""
    known = [value for value in values if value is not None]
    step = max(1, -(-len(known) // width))
    return [sum(known[i : i + step]) / len(known[i : i + step]) for i in range(0, len(known), step)]
