"""`esker eval`."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from esker.commands.base import Commands, add_trust, command, console, run_path
from esker.config.flags import Parser

LANGUAGE = "language.json"  # in the folder of a language model's run


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "eval", run, "evaluate a run: a policy over episodes, a language model on held-out prompts")
    parser.add_argument("run", metavar="RUN_DIR", help="a run or checkpoint folder, a preset with a policy, or latest")
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="episodes or prompts (default: 100)")
    parser.add_argument("--checkpoint", default="best", metavar="best|latest|N", help="which policy (default: best)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    parser.add_argument("--workers", type=int, metavar="N", help="worker processes (default: one per core)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_trust(parser)


def run(namespace: Namespace) -> int:
    """Run the command."""
    path = run_path(namespace.run)
    if (Path(path) / LANGUAGE).is_file():
        return _language(namespace, path)
    from esker.runs.loading import evaluate

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
    _print(namespace, path, summary)
    return 0


def _language(namespace: Namespace, path: str) -> int:
    """Evaluate a run of `esker.language` on its held-out prompts."""
    from esker.language.stored import evaluate_run

    result = evaluate_run(path, namespace.episodes, namespace.checkpoint, namespace.trust)
    for notice in result.notices:
        print(f"note: {notice}", file=sys.stderr)
    if namespace.json:
        print(json.dumps(result.summary()))
        return 0
    _print(namespace, path, result.summary())
    for prompt, completion, score in result.found.examples:
        console().print(f"  {prompt!r}  {completion!r}  {score:.3g}", highlight=False, soft_wrap=True)
    return 0


def _print(namespace: Namespace, path: str, summary: dict[str, Any]) -> None:
    from esker.logs.tables import print_table

    shown = ((name.replace("_", " "), value) for name, value in summary.items())
    rows = [(name, f"{value:,.2f}" if isinstance(value, float) else f"{value:,}") for name, value in shown]
    name = path if namespace.run == "latest" else namespace.run
    print_table(console(), (f"{name}:", f"checkpoint {summary['checkpoint']}"), rows[:-1])
