"""`esker eval`."""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from esker.commands.base import Commands, add_trust, command, console, run_path
from esker.config.flags import Parser


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "eval", run, "evaluate a run's policy over seeded episodes")
    parser.add_argument("run", metavar="RUN_DIR", help="a run or checkpoint folder, a preset with a policy, or latest")
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="episodes (default: 100)")
    parser.add_argument("--checkpoint", default="best", metavar="best|latest|N", help="which policy (default: best)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    parser.add_argument("--workers", type=int, metavar="N", help="worker processes (default: one per core)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_trust(parser)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.runs.loading import evaluate

    path = run_path(namespace.run)
    result, notices = evaluate(
        path,
        episodes=namespace.episodes,
        checkpoint=namespace.checkpoint,
        seed=namespace.seed,
        workers=namespace.workers,
        trust=namespace.trust,
    )
    for notice in notices:
        print(f"note: {notice}", file=sys.stderr)
    summary = result.summary()
    if namespace.json:
        print(json.dumps(summary))
        return 0
    from esker.logs.tables import print_table

    shown = ((name.replace("_", " "), value) for name, value in summary.items())
    rows = [(name, f"{value:,.2f}" if isinstance(value, float) else f"{value:,}") for name, value in shown]
    name = path if namespace.run == "latest" else namespace.run
    print_table(console(), (f"{name}:", f"checkpoint {summary['checkpoint']}"), rows[:-1])
    return 0
