"""`esker resume`."""

from __future__ import annotations

import argparse
from argparse import Namespace
from dataclasses import fields

from esker.commands.base import Commands, add_trust, command, console, next_commands, run_path
from esker.config.flags import Parser, add_options
from esker.config.legacy import OLD_NAMES
from esker.config.resume import ResumeOptions

KNOWN = {option.name for option in fields(ResumeOptions)} | set(OLD_NAMES)


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    description = "Continue a run: bit-identical to never having stopped. Stop conditions and engine options may be changed."
    parser = command(commands, "resume", run, "continue a run, bit-identical to never having stopped", description)
    parser.add_argument("runs", metavar="RUN_DIR", nargs="+", help="a run folder, or latest; several on a device: one batch")
    add_trust(parser)
    add_options(parser, ResumeOptions, defaults=False)  # a resumed run keeps its own
    for name in OLD_NAMES:
        parser.add_argument("--" + name.replace("_", "-"), default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker import api
    from esker.logs.observers import observer_for
    from esker.logs.seeds import print_seeds

    changes = {name: value for name, value in vars(namespace).items() if name in KNOWN}
    quiet = bool(changes.get("quiet"))
    if len(namespace.runs) > 1:
        runs = api.resume_together([run_path(run) for run in namespace.runs], trust=namespace.trust, **changes)
        if not quiet:
            print_seeds(console(), runs)
        return 0
    run = api.resume(run_path(namespace.runs[0]), observer=observer_for(console(), quiet), trust=namespace.trust, **changes)
    if not quiet:
        next_commands(run)
    return 0
