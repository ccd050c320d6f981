"""Comparing runs in Python: configurations with their seeds, a table, a figure, a report."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esker.logs import html
from esker.logs.plot import Figure, draw
from esker.logs.report.data import report_data
from esker.logs.report.page import write_page
from esker.logs.tables import lines
from esker.logs.text import number
from esker.runs.groups import Group, group_runs, labelled
from esker.runs.reading import read_runs
from esker.runs.statistics import SeedSummary, summarize_seeds
from esker.tools.inline import Picture

HEADINGS = ("environment", "configuration", "seeds", "interquartile mean", "95% interval", "median", "worst")


@dataclass(frozen=True)
class Comparison:
    """Runs by configuration. Printed, or shown in a notebook, it is a table of their best centre returns."""

    groups: tuple[Group, ...]

    def summary(self, group: Group) -> SeedSummary | None:
        """The best centre returns of a configuration's seeds."""
        best = [run.best_return for run in group.distinct if run.best_return is not None]
        return summarize_seeds(best) if best else None

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each configuration, as text."""
        found: list[tuple[str, ...]] = []
        for group in self.groups:
            summary = self.summary(group)
            if summary is None:
                found.append((group.env, group.label, "0", "–", "–", "–", "–"))
                continue
            interval = f"{number(summary.low)} to {number(summary.high)}"
            values = (number(summary.iqm), interval, number(summary.median), number(summary.worst))
            found.append((group.env, group.label, str(summary.seeds), *values))
        return found

    def plot(self, output: str | Path | None = None, **options: Any) -> Picture:
        """Learning curves; options are those of `esker.logs.plot.Figure`. With an output, also a .png, .svg or .pdf."""
        figure = Figure(**options)
        with tempfile.TemporaryDirectory() as folder:
            picture = Path(folder) / "curves.png"
            notes = draw(self.groups, picture, figure)
            png = picture.read_bytes()
        if output is not None:
            draw(self.groups, Path(output), figure)
        return Picture(png, None if output is None else Path(output), tuple(notes))

    def report(self, output: str | Path = "report.html") -> Path:
        """The page that `esker report` writes."""
        write_page(report_data([run for group in self.groups for run in group.runs]), Path(output))
        return Path(output)

    def __str__(self) -> str:
        return "\n".join(lines(HEADINGS, self.rows(), right=HEADINGS[2:]))

    def _repr_html_(self) -> str:
        return html.table(HEADINGS, self.rows())


def compare(runs: Iterable[Any], labels: Iterable[str] | None = None) -> Comparison:
    """Compare runs: `esker.Run` objects, run folders, or folders that hold some. Anything else raises UsageError."""
    paths = [str(getattr(run, "path", run)) for run in ([runs] if isinstance(runs, str | Path) else runs)]
    groups = group_runs(read_runs(paths))
    return Comparison(tuple(groups if labels is None else labelled(groups, list(labels))))
