"""The seeds of one configuration as one result: a table, and their summary in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from esker.logs.tables import print_table
from esker.logs.text import number
from esker.runs.statistics import summarize_seeds
from esker.system.words import count

if TYPE_CHECKING:
    from rich.console import Console

    from esker.runs.loading import Run


def print_seeds(console: Console, runs: Sequence[Run]) -> None:
    """A row for each seed, then interquartile mean with interval, median and worst of their best centre returns."""
    rows = []
    for run in runs:
        last = run.history[-1] if run.history else {}
        counts = (f"{last.get('generation', -1) + 1:,}", f"{last.get('env_steps', 0):,}")
        rows.append((str(run.config.seed), number(run.best_return), *counts, str(run.path)))
    headings = ("seed", "best centre return", "generations", "steps", "run")
    print_table(console, headings, rows, right=headings[:-1])
    best = [run.best_return for run in runs if run.best_return is not None]
    if best:
        text = f"{count(len(best), 'seed')}: {summarize_seeds(best).text()}"
        console.print(text, highlight=False, soft_wrap=True)
