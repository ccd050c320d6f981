"""`esker presets`."""

from __future__ import annotations

import json
from argparse import Namespace

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "presets", run, "list the presets")
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from dataclasses import asdict

    from esker.presets import load_all

    presets = load_all().values()
    if namespace.json:
        print(json.dumps([asdict(preset) for preset in presets]))
        return 0
    from rich.table import Table

    table = Table("name", "environment", "about", "evidence")
    for preset in presets:
        table.add_row(preset.name, preset.env, preset.about, preset.evidence or "untested")
    console().print(table)
    return 0
