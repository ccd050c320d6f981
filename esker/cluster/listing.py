"""The active runs of a cluster, for `esker runs --cluster`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from esker.cluster.connect import join
from esker.cluster.viewer import summaries

if TYPE_CHECKING:
    from rich.console import Console


def show_cluster_runs(console: Console, address: str, as_json: bool) -> None:
    """Print every active run of the cluster at an address. One that does not respond raises UsageError."""
    from esker.logs.tables import print_table
    from esker.logs.text import number

    join(address)
    found = summaries()
    if as_json:
        print(json.dumps([asdict(run) for run in found]))
        return
    if not found:
        console.print(
            "no run is active on this cluster; `esker train ENV --engine ray --address auto` starts one", highlight=False
        )
        return
    headings = ("run", "environment", "algo", "generation", "centre", "nodes", "workers", "status", "host", "folder")
    rows = []
    for run in found:
        counts = (f"{run.generation:,}", number(run.center_return), f"{run.nodes}", f"{run.workers}")
        rows.append((run.name, run.env, run.algo, *counts, run.status, run.host, run.path))
    print_table(console, headings, rows, right=("generation", "centre", "nodes", "workers"))
