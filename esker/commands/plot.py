"""`esker plot`."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from esker.commands.base import Commands, command, console, run_path
from esker.config.flags import Parser
from esker.errors import UsageError
from esker.logs.references import METAVAR, parse_reference

if TYPE_CHECKING:
    from esker.logs.plot import Figure
    from esker.runs.groups import Group
    from esker.runs.reading import RunData

HELP = """\
Draw learning curves for a paper: runs that differ in their seed only become one line, their average, with a band.

  esker plot runs/CartPole-v1 -o curve.svg
  esker plot runs/a runs/b --label ours --label baseline --x time --band range
  esker plot runs/Humanoid-v5 --each-seed --smooth 0.6 --reference '6000=Salimans et al.' --size 6x3.5

A folder of runs stands for all of them. With five seeds or more the line is the interquartile mean and the band
its 95% stratified bootstrap interval, else mean and standard deviation. Seeds that stopped at their goal are carried on
at their last value; the line ends where the shortest other seed ends. Copies of one run count once."""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "plot", run, "draw learning curves for a paper", HELP)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, folders of runs, or latest")
    parser.add_argument("-o", "--output", default="curve.png", metavar="FILE", help=".png, .svg or .pdf (curve.png)")
    axes = ("steps", "time", "episodes", "generations", "training")
    parser.add_argument("--x", choices=axes, default="steps", help="x-axis; training: gradient algorithms' steps (steps)")
    parser.add_argument("--y", default="center_return", metavar="COLUMN", help="journal column (center_return)")
    parser.add_argument("--log", choices=("x", "y", "xy"), default="", help="logarithmic axes")
    parser.add_argument("--average", choices=("auto", "mean", "median", "iqm"), default="auto", help="line (default: auto)")
    parser.add_argument(
        "--band", choices=("auto", "std", "range", "ci", "none"), default="auto", help="around the line (default: auto)"
    )
    parser.add_argument("--each-seed", action="store_true", help="also a thin line for each seed")
    parser.add_argument("--smooth", type=float, default=0.0, metavar="X", help="exponential mean, 0 to below 1 (0: none)")
    parser.add_argument(
        "--label", action="append", default=[], metavar="TEXT", help="name of a RUN or configuration, in order; repeatable"
    )
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar=METAVAR,
        help="horizontal line to compare with; repeatable",
    )
    parser.add_argument("--title", metavar="TEXT", help="above the curves (default: the environment)")
    parser.add_argument("--size", metavar="WxH", help="of the whole figure, in inches (default: 5.2x3.4 a panel)")
    parser.add_argument("--no-caption", action="store_true", help="leave out the line that explains lines and bands")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.logs.plot import draw
    from esker.runs.reading import read_runs

    output, figure = Path(namespace.output), _figure(namespace)
    paths = [run_path(path) for path in namespace.runs]
    runs = read_runs(paths, skip=_note)
    for note in draw(_groups(runs, paths, namespace.label), output, figure):
        _note(note)
    count = f"{len(runs)} runs" if len(runs) != 1 else "1 run"
    console().print(f"{output}: {count}", highlight=False, soft_wrap=True, markup=False)
    return 0


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def _groups(runs: list[RunData], paths: list[str], labels: list[str]) -> list[Group]:
    """The runs by configuration; a label for each RUN names what that argument holds, else each configuration."""
    from esker.runs.groups import group_runs, labelled
    from esker.runs.reading import find_runs

    if not labels or len(labels) != len(paths):
        groups = group_runs(runs)
        return labelled(groups, labels) if labels else groups
    place = {folder: number for number, path in reversed(list(enumerate(paths))) for folder in find_runs([path])}
    groups = group_runs(runs, source=lambda run: place[run.folder.path])
    names = []
    for group in groups:
        number = place[group.runs[0].folder.path]
        rivals = [one for one in groups if place[one.runs[0].folder.path] == number and one.env == group.env]
        names.append(labels[number] if len(rivals) == 1 else f"{labels[number]} {group.label}")
    return labelled(groups, names)


def _figure(namespace: Namespace) -> Figure:
    from esker.logs.plot import Figure

    if not 0 <= namespace.smooth < 1:
        raise UsageError(f"smooth is {namespace.smooth:g}; expected 0 (none) to below 1, as 0.6")
    return Figure(
        x=namespace.x,
        y=namespace.y,
        average=namespace.average,
        band=namespace.band,
        title=namespace.title,
        size=_size(namespace.size),
        smoothing=namespace.smooth,
        log=namespace.log,
        each_seed=namespace.each_seed,
        caption=not namespace.no_caption,
        references=tuple(map(parse_reference, namespace.reference)),
    )


def _size(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)[xX×](\d+(?:\.\d+)?)", text)
    if not match or not all(1 <= float(part) <= 60 for part in match.groups()):
        raise UsageError(f"size is {text!r}; expected inches from 1 to 60, as 6x4")
    return float(match[1]), float(match[2])
