"""Learning curves for papers: the average over seeds with a band, one panel for each environment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esker.errors import UsageError, nearest
from esker.logs.references import Reference
from esker.runs.curves import AVERAGE_NAMES, BAND_NAMES, MANY_SEEDS, Band, Curve, after_zero, aggregate, smooth
from esker.runs.groups import Group
from esker.runs.reading import AXES, AXIS_LABELS

# Okabe and Ito's colours: distinguishable for colour-blind readers and in greyscale.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7f7f7f")
FORMATS = (".png", ".svg", ".pdf")
PANEL = (5.2, 3.4)  # inches of one panel
MOST_COLUMNS = 4
MOST_PANELS_WIDE = 3  # environments in one row


@dataclass(frozen=True)
class Figure:
    """What to draw. `auto`: interquartile mean and its interval with five seeds or more, else mean and deviation."""

    x: str = "steps"
    y: str = "center_return"
    average: str = "auto"
    band: str = "auto"
    title: str | None = None
    size: tuple[float, float] | None = None
    smoothing: float = 0.0
    log: str = ""
    each_seed: bool = False
    caption: bool = True
    references: tuple[Reference, ...] = ()


def draw(groups: Sequence[Group], output: Path, figure: Figure | None = None) -> list[str]:
    """Draw the groups' curves into a .png, .svg or .pdf; returns notes. What cannot be drawn raises UsageError."""
    figure = figure or Figure()
    _check(groups, output, figure)
    notes = [note for group in groups for note in group.notes()]
    notes += [f"{group.env}, {group.label}: no generation to draw yet" for group in groups if not group.distinct]
    groups, plt = [group for group in groups if group.distinct], _matplotlib()
    average, band = _methods(groups, figure)
    environments = list(dict.fromkeys(group.env for group in groups))
    rows, columns = grid_of(len(environments))
    size = figure.size or (PANEL[0] * columns, PANEL[1] * rows)
    picture, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    drawn: list[Band] = []
    for panel, env in zip(axes.flat, environments, strict=False):
        drawn += _panel(panel, [group for group in groups if group.env == env], figure, average, band)
        panel.set(title=figure.title or env, xlabel=AXIS_LABELS[figure.x], ylabel=_spoken(figure.y))
    for panel in axes.flat[len(environments) :]:
        panel.set_visible(False)
    text = caption(groups, average, band, sum(one.carried for one in drawn), any(one.cut for one in drawn))
    if figure.caption and text:
        picture.supxlabel(text, fontsize=7, color="#555555", wrap=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(output, dpi=200, metadata={"Date": None} if output.suffix == ".svg" else None)
    plt.close(picture)
    return notes + ([text] if text else [])


def _spoken(column: str) -> str:
    return column.replace("_", " ").replace("center", "centre")


def grid_of(panels: int) -> tuple[int, int]:
    """Rows and columns for some panels, about as wide as a page."""
    if panels <= MOST_PANELS_WIDE:
        return 1, panels
    columns = min(MOST_COLUMNS, math.ceil(math.sqrt(panels)))
    return math.ceil(panels / columns), columns


def caption(groups: Sequence[Group], average: str, band: str, carried: int, cut: bool = False) -> str:
    """What the lines and bands are, for the figure's foot; empty where every line is one run."""
    if all(len(group.distinct) == 1 for group in groups):
        return ""
    text = f"line: {AVERAGE_NAMES[average]} over seeds"
    text += f"; band: {BAND_NAMES[band]}" if band != "none" else ""
    if carried:
        seeds = "1 seed stopped at its goal and is" if carried == 1 else f"{carried} seeds stopped at their goal and are"
        text += f"; {seeds} carried on at the last value"
    return text + "; a line ends where the shortest of its seeds does" * cut


def _check(groups: Sequence[Group], output: Path, figure: Figure) -> None:
    if output.suffix not in FORMATS:
        raise UsageError(f"output is {str(output)!r}; expected a file that ends in {', '.join(FORMATS)}")
    rows = [row for group in groups for run in group.runs for row in run.rows]
    known = dict.fromkeys(name for row in rows for name in row)
    if not known:
        raise UsageError("no run has a generation to draw yet; `esker resume` continues them")
    if figure.y not in known:
        raise UsageError(f"unknown column {figure.y!r}{nearest(figure.y, known)}; the journal has {', '.join(known)}")
    if AXES[figure.x] not in known:
        raise UsageError(f"x is {figure.x!r}, and no journal has {AXES[figure.x]}; use --x steps")


def _methods(groups: Sequence[Group], figure: Figure) -> tuple[str, str]:
    several = [len(group.distinct) for group in groups if len(group.distinct) > 1]
    many = bool(several) and min(several) >= MANY_SEEDS
    average = figure.average if figure.average != "auto" else "iqm" if many else "mean"
    # A deviation belongs to the mean alone; the other averages have an interval.
    band = figure.band if figure.band != "auto" else "std" if average == "mean" else "ci"
    return average, band


def _panel(panel: Any, groups: Sequence[Group], figure: Figure, average: str, band: str) -> list[Band]:
    """Draw one environment; returns what was drawn of each group."""
    drawn = []
    for number, group in enumerate(groups):
        color = COLORS[number % len(COLORS)]
        curves = [smooth(run.curve(figure.x, figure.y), figure.smoothing) for run in group.distinct]
        curves = [after_zero(curve) for curve in curves] if "x" in figure.log else curves
        found = aggregate(curves, average, band)
        if found is None:
            _apart(panel, curves, color, group.label)
            continue
        label = group.label + (f" ({group.count_text()})" if len(curves) > 1 else "")
        _lines(panel, found, curves if len(curves) > 1 and figure.each_seed else [], color, label)
        drawn.append(found)
    for reference in figure.references:
        if reference.env in (None, groups[0].env):
            panel.axhline(reference.value, color="#555555", linewidth=1, linestyle=(0, (4, 3)), label=reference.name or None)
    _finish(panel, figure)
    return drawn


def _apart(panel: Any, curves: Sequence[Curve], color: str, name: str) -> None:
    """Draw each seed of a group whose seeds have no stretch in common, as where one ended before another began to report."""
    label = f"{name} (each seed: they share no stretch)"
    for curve in curves:
        if len(curve.x):
            panel.plot(curve.x, curve.y, color=color, linewidth=1, marker="o", markersize=3, label=label)
            label = "_"  # one entry in the legend


def _lines(panel: Any, band: Band, curves: Sequence[Curve], color: str, label: str) -> None:
    for curve in curves:
        panel.plot(curve.x, curve.y, color=color, linewidth=0.6, alpha=0.45)
        if curve.ended:
            panel.plot(curve.x[-1:], curve.y[-1:], color=color, marker="o", markersize=2.5, alpha=0.7)
    marker = "o" if len(band.x) == 1 else None  # a line through one point cannot be seen
    panel.plot(band.x, band.average, color=color, linewidth=1.6, marker=marker, markersize=4, label=label)
    if (band.high > band.low).any():
        if len(band.x) == 1:
            panel.vlines(band.x, band.low, band.high, color=color, linewidth=1)
        panel.fill_between(band.x, band.low, band.high, color=color, alpha=0.18, linewidth=0)


def _finish(panel: Any, figure: Figure) -> None:
    panel.grid(alpha=0.25, linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
    panel.xaxis.set_major_formatter(short_number)
    panel.yaxis.set_major_formatter(short_number)
    if "x" in figure.log:
        panel.set_xscale("log")
        _log_ticks(panel.xaxis)
    if "y" in figure.log and panel.dataLim.y0 > 0:
        panel.set_yscale("log")
        _log_ticks(panel.yaxis)
    elif "y" in figure.log:  # returns at or below zero have no logarithm
        panel.set_yscale("symlog")
    if panel.get_legend_handles_labels()[0]:
        panel.legend(frameon=False, fontsize=8)


def _log_ticks(axis: Any) -> None:
    """Marks at 1, 2 and 5 times a power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axis.set_major_formatter(short_number)
    axis.set_minor_formatter(NullFormatter())


def short_number(value: float, _: int | None = None) -> str:
    """A mark on an axis in short form: 2.5M, 400k, -1,200, 0.02."""
    size = abs(value)
    if size >= 1e4:
        unit, name = (1e6, "M") if size >= 1e6 else (1e3, "k")
        return f"{value / unit:.4g}{name}".replace("-", "−")
    return f"{value:,.6g}".replace("-", "−")


def _matplotlib() -> Any:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise UsageError("plots need matplotlib; pip install 'esker[plot]'") from error
    mpl.use("Agg")
    mpl.rcParams["svg.fonttype"] = "none"  # text stays text, to be edited and searched
    mpl.rcParams["svg.hashsalt"] = "esker"  # the same runs give the same file
    import matplotlib.pyplot as plt

    return plt
