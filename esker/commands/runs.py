"""`esker runs`."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser
from esker.errors import UsageError

if TYPE_CHECKING:
    from esker.runs.listing import RunSummary

ASCENDING = ("path", "env", "algo", "seed", "status", "age")
DESCENDING = ("best", "generation", "env_steps")
STYLES = {"running": "green", "interrupted": "yellow", "crashed": "red", "failed": "red", "damaged": "red"}


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "runs", run, "list runs: environment, algorithm, generation, best, status, age")
    parser.add_argument("folder", metavar="DIR", nargs="?", default="runs", help="where to look (default: runs)")
    parser.add_argument(
        "--sort", default="age", choices=[*ASCENDING, *DESCENDING], help="order of the list (default: age, newest first)"
    )
    parser.add_argument("--reverse", action="store_true", help="reverse the order")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--cluster", action="store_true", help="list the active runs of a Ray cluster instead")
    parser.add_argument("--address", help="with --cluster: the cluster, as HOST:PORT (default: auto, this machine's)")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.runs.listing import list_runs

    if namespace.cluster:
        from esker.cluster.listing import show_cluster_runs

        show_cluster_runs(console(), namespace.address or "auto", namespace.json)
        return 0
    if namespace.address is not None:
        raise UsageError(f"address is {namespace.address!r}, and it is for --cluster; add it")
    found = _sorted(list_runs(Path(namespace.folder)), namespace.sort, namespace.reverse)
    if namespace.json:
        print(json.dumps([asdict(summary) for summary in found]))
    elif not found:
        console().print(f"no runs under {namespace.folder}; `esker train ENV` makes one", highlight=False)
    else:
        _show(found)
    return 0


def _sorted(runs: list[RunSummary], key: str, reverse: bool) -> list[RunSummary]:
    """By a column, best first for numbers of merit; runs that lack the value come last either way."""
    known = [summary for summary in runs if getattr(summary, key) is not None]
    unknown = [summary for summary in runs if getattr(summary, key) is None]
    known.sort(key=lambda summary: getattr(summary, key), reverse=(key in DESCENDING) != reverse)
    return known + unknown


def _show(runs: list[RunSummary]) -> None:
    from esker.logs.tables import print_table
    from esker.logs.text import age, number

    headings = ("run", "environment", "algo", "seed", "generation", "steps", "best", "status", "age")
    rows = []
    for run in runs:
        seed = "?" if run.seed is None else str(run.seed)
        counts = (f"{run.generation:,}", f"{run.env_steps:,}", number(run.best))
        rows.append((run.path, run.env, run.algo, seed, *counts, run.status, age(run.age)))
    right = ("seed", "generation", "steps", "best", "age")
    print_table(console(), headings, rows, right=right, styles=STYLES)
