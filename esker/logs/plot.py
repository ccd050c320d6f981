"""Learning curves for papers: the mean over seeds with a band, one panel for each environment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from esker.errors import UsageError
from esker.runs.reading import AXIS_LABELS, Group, RunData, aggregate, group_runs

# Okabe and Ito's colours: told apart by colour-blind readers and in grey print.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7f7f7f")
FORMATS = (".png", ".svg", ".pdf")
BANDS = ("std", "range", "none")


def plot_runs(
    runs: Sequence[RunData],
    output: Path,
    *,
    x: str = "steps",
    y: str = "center_return",
    band: str = "std",
    title: str | None = None,
) -> None:
    """Draw the runs' curves into a .png, .svg or .pdf. What cannot be drawn raises UsageError."""
    if output.suffix not in FORMATS:
        raise UsageError(f"output is {str(output)!r}; expected a file that ends in {', '.join(FORMATS)}")
    known = dict.fromkeys(name for run in runs for row in run.rows for name in row)
    if y not in known:
        from esker.errors import nearest

        if not known:
            raise UsageError("no run has a generation to draw yet; `esker resume` continues them")
        raise UsageError(f"unknown column {y!r}{nearest(y, known)}; the journal has {', '.join(known)}")
    plt = _matplotlib()
    groups = group_runs(runs)
    environments = list(dict.fromkeys(group.env for group in groups))
    figure, axes = plt.subplots(
        1, len(environments), figsize=(5.2 * len(environments), 3.4), squeeze=False, layout="constrained"
    )
    for panel, env in zip(axes[0], environments, strict=True):
        _panel(panel, [group for group in groups if group.env == env], x, y, band)
        panel.set(title=title or env, xlabel=AXIS_LABELS[x], ylabel=y.replace("_", " "))
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=200, metadata={"Date": None} if output.suffix == ".svg" else None)
    plt.close(figure)


def _panel(panel: Any, groups: Sequence[Group], x: str, y: str, kind: str) -> None:
    for number, group in enumerate(groups):
        color = COLORS[number % len(COLORS)]
        curves = [run.curve(x, y) for run in group.runs]
        seeds = f" ({len(curves)} seeds)" if len(curves) > 1 else ""
        band = aggregate(curves)
        if band is None:
            continue
        panel.plot(band.x, band.mean, color=color, linewidth=1.6, label=group.label + seeds)
        if len(curves) > 1 and kind != "none":
            low, high = (band.low, band.high) if kind == "range" else (band.mean - band.std, band.mean + band.std)
            panel.fill_between(band.x, low, high, color=color, alpha=0.18, linewidth=0)
    panel.grid(alpha=0.25, linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)
    panel.ticklabel_format(axis="x", style="sci", scilimits=(-3, 5), useMathText=True)
    panel.legend(frameon=False, fontsize=8)


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
