"""The page itself: template, style and scripts from files next to this one, with the data in between."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from esker.errors import UsageError
from esker.logs.report.data import to_json
from esker.runs.files import write_whole

SCRIPTS = ("numbers.js", "curves.js", "chart.js", "tables.js", "sweep.js", "page.js")


def page(data: dict[str, Any]) -> str:
    """The whole page as HTML that needs nothing else."""
    here = files("esker.logs.report")
    script = "\n".join((here / name).read_text(encoding="utf-8") for name in SCRIPTS)
    html = (here / "page.html").read_text(encoding="utf-8")
    parts = {"{{style}}": (here / "style.css").read_text(encoding="utf-8"), "{{script}}": script, "{{data}}": to_json(data)}
    for mark, text in parts.items():
        html = html.replace(mark, text)
    return html


def write_page(data: dict[str, Any], output: Path) -> None:
    """Write the page to a file. One that cannot be written raises UsageError."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, page(data))
    except OSError as error:
        raise UsageError(f"report {str(output)!r} cannot be written: {error.strerror}") from error
