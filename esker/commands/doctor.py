"""`esker doctor`."""

from __future__ import annotations

import json
from argparse import Namespace

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser

MARKS = {"ok": "✓", "missing": "✗", "note": "·"}
STYLES = {"✓": "green", "✗": "yellow", "·": "dim"}


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    description = (
        "Report on this machine: versions, cores, threads, installed and missing extras, rendering, numeric fingerprint. "
        "Changes nothing."
    )
    parser = command(commands, "doctor", run, "check this machine: what is installed, what is missing", description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.tools.doctor import as_json, examine

    findings = examine()
    if namespace.json:
        print(json.dumps(as_json(findings)))
        return 0
    from esker.logs.tables import print_table

    output = console()
    for section in dict.fromkeys(finding.section for finding in findings):
        rows = [(MARKS[one.mark], one.name, one.text) for one in findings if one.section == section]
        output.print(section, style="bold", highlight=False)
        print_table(output, ("", "what", "found"), rows, prose=("found",), styles=STYLES)
    missing = [finding for finding in findings if finding.mark == "missing"]
    found = "1 thing is" if len(missing) == 1 else f"{len(missing)} things are"
    summary = f"{found} missing; each line shows how to install it" if missing else "nothing is missing"
    output.print(summary, highlight=False)
    return 0
