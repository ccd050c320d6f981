"""`esker presets`."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import asdict

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser
from esker.presets import for_environment, presets_for


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "presets", run, "list the presets")
    parser.add_argument("env", metavar="ENV", nargs="?", help="only those for this environment, as HalfCheetah-v5")
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(namespace: Namespace) -> int:
    """Run the command."""
    presets = presets_for(namespace.env)
    if namespace.json:
        print(json.dumps([{**asdict(preset), "policy": preset.policy is not None} for preset in presets]))
        return 0
    from esker.logs.tables import print_table

    headings = ("name", "environment", "about", "evidence")
    rows = [(one.name, one.env, one.about, one.evidence or "untested") for one in presets]
    print_table(console(), headings, rows, prose=("about", "evidence"))
    if shipped := [one.name for one in presets if one.policy is not None]:
        text = f"a trained policy comes with {', '.join(shipped)}: esker render {shipped[0]}"
        console().print(text, highlight=False, soft_wrap=True)
    if namespace.env and (own := for_environment(presets[0].env, "es")):
        text = f"`esker train {own.env}` takes {own.name}; another one: --preset NAME"
        console().print(text, highlight=False, soft_wrap=True)
    return 0
