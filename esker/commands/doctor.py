"""`esker doctor`."""

from __future__ import annotations

import json
from argparse import Namespace

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser

MARKS = {"ok": "[green]✓[/]", "missing": "[yellow]✗[/]", "note": "[dim]·[/]"}


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    description = (
        "Look at this machine: versions, cores, threads, which extras are there and how to get the others, whether "
        "pictures can be drawn, and its numeric fingerprint. Changes nothing."
    )
    parser = command(commands, "doctor", run, "what this machine has, what is missing and how to get it", description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.tools.doctor import as_json, examine

    findings = examine()
    if namespace.json:
        print(json.dumps(as_json(findings)))
        return 0
    from rich.markup import escape
    from rich.table import Table

    output = console()
    for section in dict.fromkeys(finding.section for finding in findings):
        table = Table(title=section, box=None, show_header=False, title_justify="left", title_style="bold")
        for name in ("mark", "name", "text"):
            table.add_column(name, overflow="fold")
        for finding in findings:
            if finding.section == section:
                table.add_row(MARKS[finding.mark], finding.name, escape(finding.text))
        output.print(table)
    missing = [finding for finding in findings if finding.mark == "missing"]
    summary = f"{len(missing)} things are missing; each line says how to get it" if missing else "nothing is missing"
    output.print(summary, highlight=False)
    return 0
