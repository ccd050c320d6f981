"""Tables of what was read by hand: benchmarks/results/readings.json."""

from __future__ import annotations

from evidence_text import load, table


def topics() -> set[str]:
    """What was read."""
    return {one["topic"] for one in load("readings")["readings"]}


def readings(topic: str) -> str:
    """The readings of a topic."""
    rows = [[one["what"], one["value"], one["how"]] for one in load("readings")["readings"] if one["topic"] == topic]
    return table(["read by hand", "value", "how"], rows)
