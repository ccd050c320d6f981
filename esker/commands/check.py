"""`esker check`."""

from __future__ import annotations

import json
from argparse import Namespace

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "check", run, "check an environment: spaces, determinism on reset, speed")
    parser.set_defaults(imports_here=True)
    parser.add_argument("env", metavar="ENV", help="a Gymnasium id, module:Id, or module:make_env")
    parser.add_argument("--env-kwargs", default="{}", metavar="JSON", help="arguments for the environment")
    parser.add_argument("--wrapper", action="append", default=[], metavar="NAME", help="module:callable that wraps it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.tools.check import check_environment

    report = check_environment(namespace.env, namespace.env_kwargs, tuple(namespace.wrapper))
    if namespace.json:
        print(json.dumps(report.as_dict()))
        return 0
    from esker.logs.tables import print_table

    print_table(console(), ("esker check", namespace.env), report.lines(), prose=(namespace.env,))
    return 0
