"""The display of a run in a notebook: one output, in place, with the numbers, the curve and the notes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esker.algorithms.observer import Row
from esker.logs import html
from esker.logs.console import fraction_done, headline
from esker.logs.display import cells, remaining
from esker.logs.text import duration
from esker.runs.folder import RunFolder

REDRAW_SECONDS = 0.3  # a notebook stores what it is sent


class Notebook:
    """Shows a run in the output of the cell that trains it."""

    is_display = True  # replaces the console

    def __init__(self) -> None:
        self.row: Row | None = None
        self.returns: list[float | None] = []
        self.notes: list[str] = []
        self.drawn = 0.0
        self.handle: Any = None
        self.ended = False

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> None:
        """Open the output."""
        from IPython.display import display

        self.config = config
        self.lines = headline(config, folder, rows)
        self.returns = [row["center_return"] for row in rows]
        self.row = rows[-1] if rows else None
        self.handle = display(self, display_id=True)

    def generation(self, row: Row, returns: NDArray[np.float64] | None = None) -> None:
        """Show the newest generation, unless the last one was shown just now."""
        self.row = row
        self.returns.append(row["center_return"])
        if "note" in row:
            self.notes.append(row["note"])
        if time.monotonic() - self.drawn > REDRAW_SECONDS:
            self._draw()

    def note(self, text: str) -> None:
        """A line below the numbers."""
        self.notes.append(text)
        self._draw()

    def end(self, reason: str) -> None:
        """Leave the last picture, with why the run ended."""
        self.lines, self.ended = [*self.lines[:2], reason], True
        self._draw()

    def _draw(self) -> None:
        self.drawn = time.monotonic()
        if self.handle is not None:
            self.handle.update(self)

    def _repr_html_(self) -> str:
        shown = "" if self.row is None else html.facts(self._cells(self.row))
        notes = html.facts(("note", note) for note in self.notes) if self.notes else ""
        lines = html.facts(tuple(line.partition(": ")[::2]) for line in self.lines)  # type: ignore[misc]
        return lines + shown + html.curve(self.returns, "centre return") + notes

    def _cells(self, row: Row) -> list[tuple[str, str]]:
        if self.ended:  # whichever condition ended it
            return [*cells(row), ("time", f"took {duration(row['wall_time'])}")]
        done = fraction_done(self.config, row)
        left = [] if done is None else [("done", f"{done:.0%}, {duration(remaining(row, done))} left")]
        return [*cells(row), *left]

    def __repr__(self) -> str:
        return "\n".join(self.lines)
