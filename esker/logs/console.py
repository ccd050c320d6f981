"""The console: a live display in a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from esker.algorithms.observer import Pulsing, Row
from esker.config.options import ESConfig
from esker.engines.engine import Pulse
from esker.errors import Damage
from esker.logs.display import details, picture, pulse_text, remaining
from esker.logs.text import duration, number, rank_text, rate
from esker.runs.folder import RunFolder
from esker.system.words import count

Returns = NDArray[np.float64]
SAID_ELSEWHERE = ("interrupted", "failed")  # the command line prints these with their remedy


class Quiet:
    """Shows nothing."""

    is_display = True  # replaces the console
    silent = True

    def begin(self, config: ESConfig, folder: RunFolder, rows: list[Row]) -> None:
        """A run begins."""

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """A generation was committed."""

    def note(self, text: str) -> None:
        """Show a notice only if it is about damage."""
        if isinstance(text, Damage):
            print(f"note: {text}", file=sys.stderr)

    def end(self, reason: str) -> None:
        """The run ended."""


class Plain:
    """A line per generation, for files and pipes."""

    is_display = True  # replaces the console

    def __init__(self, console: Console) -> None:
        self.console = console

    def begin(self, config: ESConfig, folder: RunFolder, rows: list[Row]) -> None:
        """Print what will be done and when it stops."""
        self.config = config
        for line in headline(config, folder, rows):
            self._print(line)

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """One line with what matters."""
        done = fraction_done(self.config, row)
        eta = f"  eta {duration(remaining(row, done))}" if done else ""
        extra = "  ".join(f"{name.replace('_', ' ')} {text}" for name, text in details(row))
        self._print(
            f"generation {row['generation']}  steps {row['env_steps']:,} ({rate(row)})  "
            f"return mean {number(row['return_mean'])} max {number(row['return_max'])}  "
            f"centre {number(row['center_return'])} rank {rank_text(row)}  "
            f"length {number(row['episode_length_mean'])}  {extra}{eta}"
        )
        if "note" in row:
            self.note(row["note"])

    def note(self, text: str) -> None:
        """A line that begins with `note:`."""
        self._print(f"note: {text}")

    def end(self, reason: str) -> None:
        """Print why it ended, unless the caller does."""
        if reason not in SAID_ELSEWHERE:
            self._print(reason)

    def _print(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)


class Display:
    """A live table with a bar to the stop condition and the curve of the centre's return."""

    is_display = True  # replaces the console

    def __init__(self, console: Console) -> None:
        self.console = console
        self.row: Row | None = None
        self.returns: list[float | None] = []
        self.pulsing: Pulsing | None = None
        self.finished = False

    def begin(self, config: ESConfig, folder: RunFolder, rows: list[Row]) -> None:
        """Print what will be done, then show progress."""
        self.config = config
        self.returns = [row["center_return"] for row in rows]
        self.row = rows[-1] if rows else None
        for line in headline(config, folder, rows):
            self.console.print(line, highlight=False, markup=False)
        self.live = Live(console=self.console, refresh_per_second=4, get_renderable=self.picture)
        self.live.start()

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """Show the newest generation."""
        self.row = row
        self.returns.append(row["center_return"])
        if "note" in row:
            self.note(row["note"])
        self.live.refresh()

    def pulse(self, source: Pulsing | None) -> None:
        """The source of the current generation's progress."""
        self.pulsing = source

    def note(self, text: str) -> None:
        """A line above the live table."""
        self.live.console.print(Text(f"note: {text}", style="yellow"))

    def end(self, reason: str) -> None:
        """Leave the last picture, and print why it ended."""
        self.pulsing, self.finished = None, reason.startswith("finished")
        self.live.refresh()
        self.live.stop()
        if reason not in SAID_ELSEWHERE:
            self.console.print(Text(reason, style="bold"))

    def picture(self) -> RenderableType:
        """The current state of the run."""
        pulse = self.pulsing() if self.pulsing else None
        if self.row is None:
            return Text(first_line(pulse), style="dim")
        done = fraction_done(self.config, self.row)
        return picture(self.console, self.row, self.returns, done, finished=self.finished, pulse=pulse)


def first_line(pulse: Pulse | None) -> str:
    """The status before the first generation is committed."""
    return f"generation 0 under way: {pulse_text(pulse)}" if pulse and pulse.steps else "starting workers …"


def headline(config: ESConfig, folder: RunFolder, rows: list[Row]) -> list[str]:
    """What will be done, where, and when it stops."""
    from esker.algorithms.loop import stop_text

    population = getattr(config, "population", None)  # None: the strategy's own
    members = f", {count(population, 'member')} a generation" if population is not None else ""
    verb = f"resuming at generation {len(rows)}" if rows else "training"
    return [
        f"{verb}: {config.env} with {config.algo}, seed {config.seed}{members}",
        f"run folder: {folder.path}",
        f"stops at: {stop_text(config)}",
    ]


def fraction_done(config: ESConfig, row: Row) -> float | None:
    """How far the run is to the nearest of its limits (a goal has no distance)."""
    limits = [
        (row["generation"] + 1, config.generation_limit),
        (row["env_steps"], config.steps),
        (row.get("training_steps", 0), config.training_limit),
        (row["wall_time"], config.wall_time),
    ]
    parts = [at / limit for at, limit in limits if limit]
    return min(max(parts), 1.0) if parts else None
