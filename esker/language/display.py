"""A language evolution on the console: a live table with examples on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from esker.algorithms.observer import Row
from esker.errors import Damage
from esker.language.task import HeldOut

LINES_EVERY = 10  # generations between lines where there is no terminal
WIDTH = 60  # characters of a prompt or completion that are shown


class Notices:
    """Follows a run for its notices alone; damage is printed by the evolution itself."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def begin(self, config: Any, folder: Any, rows: list[Row]) -> None:
        """Rows are shown as the task makes them."""

    def generation(self, row: Row, returns: Any = None) -> None:
        """Likewise."""

    def note(self, text: str) -> None:
        """A notice for the user."""
        if not isinstance(text, Damage):
            self._show(text)

    def end(self, reason: str) -> None:
        """The display ends with the call of `run`."""


class Display:
    """Shows rows, held-out accuracy and example completions."""

    def __init__(self, quiet: bool, console: Console | None = None) -> None:
        self.quiet = quiet
        self.console = console or Console()
        self._live: Live | None = None
        self._row: dict[str, Any] | None = None
        self._held: list[HeldOut] = []
        self._began, self._tokens = time.perf_counter(), 0

    def begin(self) -> None:
        """Start the live display, where there is a terminal."""
        self._began = time.perf_counter()
        if not self.quiet and self.console.is_terminal:
            self._live = Live(self._view(), console=self.console, refresh_per_second=4)
            self._live.start()

    def end(self) -> None:
        """Leave the last view on the screen."""
        if self._live is not None:
            self._live.update(self._view())
            self._live.stop()
            self._live = None

    def note(self, text: str) -> None:
        """Print a notice."""
        if not self.quiet:
            self.console.print(text, highlight=False, markup=False)

    def row(self, row: dict[str, Any], tokens: int) -> None:
        """Show a finished generation."""
        self._row, self._tokens = row, tokens
        if self._live is not None:
            self._live.update(self._view())
        elif not self.quiet and (row["generation"] + 1) % LINES_EVERY == 0:
            self.note(self._line(row))

    def held_out(self, found: HeldOut) -> None:
        """The held-out prompts were evaluated."""
        self._held.append(found)
        if self._live is None:
            self.note(f"generation {found.generation}  held out: {found.accuracy:.1%} right, score {found.score:.4g}")

    def _line(self, row: dict[str, Any]) -> str:
        center = "–" if row["center_return"] is None else f"{row['center_return']:.4g}"
        speed = self._tokens / max(time.perf_counter() - self._began, 1e-9)
        return (
            f"generation {row['generation'] + 1}  score {center}  members mean {row['return_mean']:.4g} "
            f"max {row['return_max']:.4g}  {speed:,.0f} tokens/s  {row['wall_time']:.1f} s"
        )

    def _view(self) -> Group:
        parts: list[Any] = [Text("starting" if self._row is None else self._line(self._row))]
        if self._held:
            last = self._held[-1]
            first = self._held[0]
            parts.append(
                Text(f"held out: {last.accuracy:.1%} right (at first {first.accuracy:.1%}), score {last.score:.4g}")
            )
            table = Table("prompt", "completion", "score", box=None, pad_edge=False)
            for prompt, completion, score in last.examples:
                table.add_row(Text(repr(prompt)[-WIDTH:]), Text(repr(completion)[:WIDTH]), f"{score:.3g}")
            parts.append(table)
        return Group(*parts)
