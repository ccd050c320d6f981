"""The journal: one JSON object a line, one line a generation."""

from __future__ import annotations

import json
from typing import Any


def parse_rows(text: str) -> list[dict[str, Any]]:
    """The rows of a journal, up to the first line that is not a row."""
    rows: list[dict[str, Any]] = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(row, dict) or type(row.get("generation")) is not int:
            break
        rows.append(row)
    return rows
