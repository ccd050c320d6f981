"""Several runs on the console as one: notices once, a line now and then, the runs' folders at the end."""

from __future__ import annotations

import statistics
import threading
import time
from typing import Any

from rich.console import Console

from esker.algorithms.observer import Returns, Row
from esker.errors import Damage
from esker.logs.text import number
from esker.system.words import count

EVERY = 5.0  # seconds between lines


class Together:
    """What the runs have in common is printed once; their rows are summed up."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self.console, self.quiet = console, quiet
        self.rows: dict[Part, Row] = {}
        self.noted: set[str] = set()
        self._lock = threading.Lock()
        self._printed, self._steps = time.monotonic(), 0

    def note(self, text: str) -> None:
        """Print a notice, once."""
        with self._lock:
            if text not in self.noted and (not self.quiet or isinstance(text, Damage)):
                self.console.print(f"note: {text}", highlight=False, soft_wrap=True, markup=False)
            self.noted.add(text)

    def begin(self, run: Part, row: Row) -> None:
        """The last row of a run that is resumed."""
        with self._lock:
            self.rows[run] = row
            self._steps += row["env_steps"]

    def row(self, run: Part, row: Row) -> None:
        """A run's newest row."""
        with self._lock:
            self.rows[run] = row
            seconds = time.monotonic() - self._printed
            if self.quiet or seconds < EVERY:
                return
            steps = sum(each["env_steps"] for each in self.rows.values())
            rate, self._steps = (steps - self._steps) / seconds, steps
            self._printed = time.monotonic()
            self.console.print(self._line(steps, rate), highlight=False, soft_wrap=True, markup=False)

    def _line(self, steps: int, rate: float) -> str:
        generations = [row["generation"] for row in self.rows.values()]
        centers = [row["center_return"] for row in self.rows.values() if row["center_return"] is not None]
        best = [row["best_return"] for row in self.rows.values() if row["best_return"] is not None]
        returns = f"  centre mean {number(statistics.fmean(centers))}  best {number(max(best))}" if centers and best else ""
        between = f"{min(generations)} to {max(generations)}"
        return f"{count(len(self.rows), 'run')}  generation {between}  steps {steps:,} ({rate:,.0f}/s){returns}"


class Part:
    """The observer of one of the runs."""

    is_display = True  # replaces the console

    def __init__(self, whole: Together) -> None:
        self.whole = whole

    def begin(self, config: Any, folder: Any, rows: list[Row]) -> None:
        """The run starts, or resumes after `rows`."""
        if rows:
            self.whole.begin(self, rows[-1])

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """A generation was committed."""
        self.whole.row(self, row)

    def note(self, text: str) -> None:
        """A notice for the user."""
        self.whole.note(text)

    def end(self, reason: str) -> None:
        """The run ended."""
