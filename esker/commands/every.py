"""All commands, in the order in which the help lists them."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from esker.config.flags import Parser

# Each is a module of esker.commands.
COMMANDS = (
    "train",
    "resume",
    "evaluate",
    "render",
    "report",
    "plot",
    "runs",
    "sweep",
    "export",
    "upload",
    "card",
    "check",
    "doctor",
    "presets",
    "examples",
    "bench",
    "attach",
    "stop",
    "cluster",
    "completion",
)
WITH_OPTIONS = ("train", "sweep")  # their flags are those of the algorithm that the command line names


def add_commands(parser: Parser, arguments: Sequence[str]) -> Any:
    """Register every command; those with options get the flags that `arguments`, a whole command line, needs."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for name in COMMANDS:
        module = importlib.import_module(f"esker.commands.{name}")
        if name in WITH_OPTIONS:
            module.add(commands, arguments[1:] if arguments[:1] == [name] else None)
        else:
            module.add(commands)
    return commands
