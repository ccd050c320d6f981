"""`esker resume`."""

from __future__ import annotations

from argparse import Namespace

from esker.commands.base import Commands, add_trust, command, console, next_commands, run_path
from esker.config.flags import Parser, add_all_options, given_any
from esker.config.options import ALGORITHMS, RESUMABLE


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    description = "Continue a run: bit-identical to never having stopped. Stop conditions and engine options may be changed."
    parser = command(commands, "resume", run, "continue a run, bit-identical to never having stopped", description)
    parser.add_argument("run", metavar="RUN_DIR", help="a run folder, or latest")
    add_trust(parser)
    add_all_options(parser, ALGORITHMS, only=RESUMABLE)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker import api
    from esker.logs.observers import observer_for

    changes = given_any(namespace, ALGORITHMS)
    quiet = bool(changes.get("quiet"))
    run = api.resume(run_path(namespace.run), observer=observer_for(console(), quiet), trust=namespace.trust, **changes)
    if not quiet:
        next_commands(run)
    return 0
