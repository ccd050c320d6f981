"""The tables of benchmarks/results/functions.json: time and evaluations on black-box functions."""

from __future__ import annotations

from typing import Any

from evidence_text import load, table
from evidence_values import setting

VERSIONS = load("functions")["versions"]
SYSTEMS = {"esker": "esker", "evotorch": f"EvoTorch {VERSIONS['evotorch']}", "evosax": f"evosax {VERSIONS['evosax']}"}


def origin() -> str:
    """When and where."""
    data = load("functions")
    return f"{data['date']}, {data['machine']}: `{data['command']}`"


def budgets() -> str:
    """What a search may take in each dimension."""
    seeds, generations = setting("functions.py", "SEEDS"), setting("functions.py", "GENERATIONS")
    return table(
        ["d", "seeds", "generations at most"], [[f"{d:,}", len(seeds[d]), f"{generations[d]:,}"] for d in generations]
    )


def times() -> str:
    """Milliseconds per generation."""
    head = ["strategy", "d", "members", *(f"{name}, ms" for name in SYSTEMS.values()), "better peer / esker"]
    rows = [
        [row["strategy"], f"{row['dimension']:,}", row["population"]]
        + [f"{row['seconds'][name] * 1e3:.2f}" for name in SYSTEMS]
        + [f"{row['times_as_fast']:.2f}"]
        for row in load("functions")["times"]
    ]
    return table(head, rows)


def evaluations() -> str:
    """Evaluations to the smallest share of the start's value that all three reached, or else that any did."""
    head = ["strategy", "d", "function", "to", *SYSTEMS.values()]
    rows = []
    for row in load("functions")["to_target"]:
        found = row["evaluations"]
        share = _share(found)
        cells = [found[name][share] for name in SYSTEMS]
        rows.append([row["strategy"], f"{row['dimension']:,}", row["function"], share, *map(_count, cells)])
    return table(head, rows)


def _share(found: dict[str, dict[str, Any]]) -> str:
    shares = sorted(found["esker"], key=float)
    by_all = [share for share in shares if all(values[share] is not None for values in found.values())]
    by_any = [share for share in shares if any(values[share] is not None for values in found.values())]
    return (by_all or by_any or shares[-1:])[0]


def _count(value: float | None) -> str:
    return "—" if value is None else f"{value:,.0f}"
