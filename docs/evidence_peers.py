"""The tables beside other libraries: benchmarks/results/functions.json and, where it was measured, peers.json."""

from __future__ import annotations

import sys
from statistics import median

from evidence_text import ROOT, load, stored, table

SHOWN = (("pgpe", 10), ("cma", 1_000), ("pgpe", 100_000), ("snes", 100_000), ("sep-cma", 100_000))  # in the README
NAMES = {"esker": "esker", "evotorch": "EvoTorch", "evosax": "evosax"}


def readme() -> str:
    """Time per generation beside EvoTorch and evosax, and steps per second where they are stored."""
    times = {(row["strategy"], row["dimension"]): row for row in load("functions")["times"]}
    rows = []
    for strategy, dimension in SHOWN:
        row = times[strategy, dimension]
        what = (
            f"`{strategy}`, {dimension:,} parameters, {row['population']} members: **ms per generation** (lower is better)"
        )
        rows.append([what, *(milliseconds(row["seconds"][name]) for name in NAMES)])
    versions = load("functions")["versions"]
    heads = [f"{shown} {versions[name]}" if name in versions else shown for name, shown in NAMES.items()]
    return table(["", *heads], steps() + rows)


def steps() -> list[list[str]]:
    """HalfCheetah's steps per second and CartPole's time to solved, on two processes; nothing where they are not stored."""
    if not stored("peers"):
        return []
    found = load("peers")
    contenders = found["steps"]["HalfCheetah-v5"].items()
    rates = {name: [one["steps_per_second"] for key, one in contenders if key.startswith(name)] for name in NAMES}
    cells = [f"{max(rates[name]):,.0f}" if rates[name] else "–" for name in NAMES]
    seeds = found["solve"]["seeds"]
    times = [f"{median(one['seconds'] for one in seeds[name]):.1f}" if name in seeds else "–" for name in NAMES]
    return [
        ["HalfCheetah-v5, two processes: **steps per second** (higher is better)", *cells],
        ["CartPole-v1, two processes: **seconds to solved**, median of ten seeds (lower is better)", *times],
    ]


def peers() -> str:
    """Everything that `make bench-peers` stored."""
    if not stored("peers"):
        return "No result of `make bench-peers` is stored yet."
    sys.path.insert(0, str(ROOT / "benchmarks" / "peers"))
    from tables import as_markdown  # the benchmark prints the same

    text: str = as_markdown(load("peers"))
    return text


def milliseconds(seconds: float) -> str:
    """A time per generation."""
    return f"{seconds * 1e3:.2f}" if seconds < 0.01 else f"{seconds * 1e3:,.0f}"
