"""Benchmarks: what this machine does, as ratios to something measured in the same run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from rich.console import Console

from esker.bench.measurement import Measurement
from esker.errors import UsageError, nearest
from esker.logs.tables import print_table


def benchmarks() -> dict[str, Callable[[bool], list[Measurement]]]:
    """The benchmarks by name; each takes `quick`."""
    from esker.bench import memory, networks, rollout, update, useful, vectorizers

    rollouts = {f"rollout/{case.env}": case.measure for case in rollout.CASES}
    worlds = {
        "forward": networks.forward,
        "normalizing": networks.normalizing,
        "recurrence": networks.recurrence,
        "envpool": vectorizers.measure,
    }
    measurable = {"memory": memory.measure} if memory.MEASURABLE else {}
    return {**rollouts, **worlds, "useful-steps": useful.useful_steps, "update": update.measure, **measurable}


def run_benchmarks(
    *, only: str | None, quick: bool, as_json: bool, console: Console, workers: list[int] | None = None
) -> int:
    """Run all benchmarks, or those whose name begins with `only`, and print them. An unknown name raises UsageError.

    `scaling` runs only when named; `workers` are its numbers of workers.
    """
    known = benchmarks()
    if only is not None and "scaling".startswith(only):
        from esker.bench import scaling

        known["scaling"] = lambda quick: scaling.measure(quick, workers)
    elif workers is not None:
        raise UsageError("--workers is for --only scaling")
    chosen = [name for name in known if only is None or name.startswith(only)]
    if not chosen:
        raise UsageError(
            f"unknown benchmark {only!r}{nearest(str(only), known)}; expected one of {', '.join([*known, 'scaling'])}"
        )
    found: list[Measurement] = []
    for name in chosen:
        if not as_json:
            console.print(f"measuring {name} …", style="dim")
        found += known[name](quick)
    if as_json:
        print(json.dumps([asdict(measurement) for measurement in found], indent=1))
        return 0
    rows = []
    for m in found:
        detail = ", ".join(f"{name} {value}" for name, value in m.detail.items())
        rows.append((m.name, f"{m.value:.3g} {m.unit}".strip(), m.wanted, detail))
    print_table(console, ("benchmark", "value", "wanted", "detail"), rows, prose=("wanted", "detail"))
    return 0
