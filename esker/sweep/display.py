"""What a sweep shows while it runs: a live table in a terminal, a line per trial elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from esker.algorithms.observer import Returns, Row
from esker.logs.text import number
from esker.sweep.study import Sweep
from esker.sweep.summary import best_trial, last_value

if TYPE_CHECKING:
    import optuna

SHOWN = 15  # trials in the live table
REDRAW_SECONDS = 0.5  # the table is read from the study, which other processes write
STYLES = {"running": "cyan", "pruned": "dim", "fail": "red", "complete": ""}


class TrialObserver:
    """Reports a trial's progress to the display."""

    is_display = True  # replaces the console

    def __init__(self, display: Display) -> None:
        self.display = display

    def begin(self, config: Any, folder: Any, rows: list[Row]) -> None:
        """A trial begins."""

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """A generation was committed."""
        self.display.progress(row)

    def note(self, text: str) -> None:
        """A notice; one that every trial repeats is shown once."""
        if text not in self.display.shown:
            self.display.shown.add(text)
            self.display.say(f"note: {text}")

    def end(self, reason: str) -> None:
        """The trial ended."""


class Display:
    """Shows the trials of every process of a sweep, and the progress of this process."""

    def __init__(self, sweep: Sweep, limit: int, console: Console, quiet: bool) -> None:
        self.sweep = sweep
        self.limit = limit
        self.console = console
        self.quiet = quiet
        self.live = Live(console=console, refresh_per_second=4) if console.is_terminal and not quiet else None
        self.row: Row | None = None
        self.current: int | None = None
        self.shown: set[str] = set()
        self.drawn = 0.0

    def __enter__(self) -> Display:
        plan = self.sweep.plan
        self.say(f"sweep {plan.name}: {plan.env} with {plan.algo}, {plan.sampler} sampler, {plan.pruner} pruner")
        self.say(f"budget of a trial: {plan.budget.text(plan.budget.maximum)}")
        self.say(f"sweep folder: {self.sweep.folder}")
        if self.live:
            self.live.start()
            self.live.update(self.table())
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.row = self.current = None
            self.live.update(self.table())
            self.live.stop()

    def say(self, text: str) -> None:
        """A line, above the table where there is one."""
        if not self.quiet:
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def begin(self, trial: int) -> TrialObserver:
        """A trial of this process begins."""
        self.current, self.row = trial, None
        return TrialObserver(self)

    def progress(self, row: Row) -> None:
        """This process's trial has another generation."""
        self.row = row
        if self.live and time.monotonic() - self.drawn > REDRAW_SECONDS:
            self.drawn = time.monotonic()
            self.live.update(self.table())

    def end(self, number_: int, error: str | None) -> None:
        """This process's trial ended."""
        if self.live:
            self.live.update(self.table())
            return
        trial = next(t for t in self.sweep.trials() if t.number == number_)
        best = best_trial(self.sweep)
        state = f"failed: {error}" if error else f"{trial.state.name.lower()}  centre {number(_value(trial))}"
        done = f"{sum(t.state.is_finished() for t in self.sweep.trials())} of {self.limit}"
        so_far = f"  [{done}; best {number(best.value)} in trial {best.number}]" if best else f"  [{done}]"
        self.say(f"trial {number_}  {state}  {params_text(trial.params)}{so_far}")

    def table(self) -> Table:
        """The newest trials, the best marked."""
        trials, best = self.sweep.trials(), best_trial(self.sweep)
        done = sum(trial.state.is_finished() for trial in trials)
        names = list(self.sweep.plan.space)
        shown = trials[-SHOWN:]
        if best and best not in shown:
            shown = [best, *shown[1:]]
        cells = [self._cells(trial, names) for trial in shown]
        if not fits(names, cells, self.console.width):  # options in one column, which may take several lines
            pairs = [" ".join(f"{name}={text}" for name, text in zip(names, row[4:], strict=True)) for row in cells]
            names, cells = ["options"], [[*row[:4], text] for row, text in zip(cells, pairs, strict=True)]
        table = Table(title=f"{done} of {self.limit} trials", box=None, header_style="dim", title_justify="left")
        for name in ("trial", "state", "centre", "budget", *names):
            justify: Literal["left", "right"] = "left" if name in ("state", "options") else "right"
            table.add_column(name, justify=justify, no_wrap=name != "options", overflow="fold")
        for trial, row in zip(shown, cells, strict=True):
            table.add_row(*row, style="bold green" if best and trial.number == best.number else None)
        return table

    def _cells(self, trial: optuna.trial.FrozenTrial, names: list[str]) -> list[Text | str]:
        state = trial.state.name.lower()
        value, spent = _value(trial), trial.last_step or 0
        if trial.number == self.current and self.row is not None:
            value, spent = self.row["center_return"], self.sweep.plan.budget.spent(self.row)
        used = min(1.0, spent / self.sweep.plan.budget.maximum)
        shown = [_short(trial.params.get(name)) for name in names]
        return [str(trial.number), Text(state, style=STYLES.get(state, "")), number(value), f"{used:.0%}", *shown]


def fits(names: Sequence[str], cells: Sequence[Sequence[Text | str]], width: int) -> bool:
    """Whether a column for each option fits next to the four of every trial."""
    headings = ("trial", "state", "centre", "budget", *names)
    widest = [max([len(heading), *(len(str(row[i])) for row in cells)]) for i, heading in enumerate(headings)]
    return sum(widest) + 2 * len(widest) <= width


def _value(trial: optuna.trial.FrozenTrial) -> float | None:
    return trial.value if trial.value is not None else last_value(trial)


def params_text(params: dict[str, Any]) -> str:
    """A trial's parameters in one line."""
    return " ".join(f"{name}={_short(value)}" for name, value in params.items())


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
