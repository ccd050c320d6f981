"""The journal: one JSON object a line, one line a generation; and what the end of a run adds to it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from esker.runs.files import read_small

Row = dict[str, Any]


def parse_rows(text: str) -> list[Row]:
    """The rows of a journal, up to the first line that is not a row."""
    rows: list[Row] = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(row, dict) or type(row.get("generation")) is not int:
            break
        rows.append(row)
    return rows


def with_final(rows: list[Row], file: Path) -> list[Row]:
    """The rows, followed by the evaluation of the last centre where the file holds that of these rows."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        final = json.loads(read_small(file))
        if final["generation"] == (rows[-1]["generation"] + 1 if rows else 0):
            float(final["best_return"] or 0), float(final.get("best_mean") or 0)
            return [*rows, final]
    return rows


def best_return(judged: list[Row]) -> float | None:
    """The best centre's mean return: in episodes played at the run's end, else the mean by which it was chosen."""
    if judged and judged[-1].get("best_mean") is not None:
        return float(judged[-1]["best_mean"])
    return next((row["best_return"] for row in reversed(judged) if row.get("best_return") is not None), None)
