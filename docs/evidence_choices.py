"""The tables of benchmarks/results/best.json and defaults.json: chosen checkpoints, and which defaults learn."""

from __future__ import annotations

import statistics
from typing import Any

from evidence_text import load, million, number, table


def best() -> str:
    """The chosen checkpoint beside the highest of all that were evaluated."""
    rows = []
    for run in load("best")["runs"]:
        means = run["means"]
        chosen, highest = str(run["chosen"]), max(means, key=means.__getitem__)
        floor = min(0.0, *means.values())
        share = (means[chosen] - floor) / ((means[highest] - floor) or 1.0)
        where = [run["env"], run["algo"], run["seed"], million(run["env_steps"]), len(means)]
        found = [f"{number(means[chosen])} (generation {chosen})", f"{number(means[highest])} (generation {highest})"]
        rows.append([*where, *found, f"{share:.3f}"])
    head = ["environment", "algorithm", "seed", "steps", "checkpoints", "chosen as best", "highest of all", "share"]
    return table(head, rows)


def defaults() -> str:
    """Each candidate's last centre return on each environment, and its mean score."""
    data = load("defaults")
    names = list(next(iter(data["returns"].values())))
    rows: list[list[Any]] = []
    for env, found in data["returns"].items():
        start = statistics.fmean(first for runs in found.values() for first, _ in runs)
        ends = [number(statistics.fmean(last for _, last in found[name])) if name in found else "–" for name in names]
        seeds = min(len(runs) for runs in found.values())
        rows.append([env, million(data["steps"][env]), seeds, number(start), *ends])
    rows.append(["mean score", "", "", "0", *(f"**{data['scores'].get(name, float('nan')):.2f}**" for name in names)])
    return table(["environment", "steps", "seeds", "untrained", *names], rows)
