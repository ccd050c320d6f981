"""The table of a stored sweep: benchmarks/results/halfcheetah-sweep.json."""

from __future__ import annotations

from typing import Any

from evidence_text import load, number, table

OPTIONS = ("lr", "sigma", "weight_decay", "population", "hidden", "shaping", "antithetic", "optimizer")


def trials() -> str:
    """Every trial, the best first."""
    data = load("halfcheetah-sweep")
    ranked = sorted(data["trials"], key=lambda trial: -trial["value"])
    rows = [[t["number"], t["state"], number(t["value"]), *(cell(t["params"][name]) for name in OPTIONS)] for t in ranked]
    head = ["trial", "state", "centre return", *(name.replace("_", " ") for name in OPTIONS)]
    return f"Commit `{data['commit'][:7]}`. {data['note']}\n\n```\n{data['command']}\n```\n\n{table(head, rows)}"


def cell(value: Any) -> str:
    """An option's value, short."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2g}" if isinstance(value, float) else str(value)
