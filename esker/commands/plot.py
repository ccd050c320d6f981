"""`esker plot`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser

HELP = """\
Draw learning curves for a paper: runs that differ in their seed only become one line, their mean, with a band.

  esker plot runs/CartPole-v1 -o curve.svg
  esker plot runs/a runs/b -o curve.png --x time --band range

A folder that holds runs stands for all of them. The mean covers the stretch that all seeds reached."""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "plot", run, "draw learning curves for a paper", HELP)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or folders that hold some")
    parser.add_argument("-o", "--output", default="curve.png", metavar="FILE", help=".png, .svg or .pdf (curve.png)")
    parser.add_argument("--x", choices=("steps", "generations", "time"), default="steps", help="default: steps")
    parser.add_argument("--y", default="center_return", metavar="COLUMN", help="journal column (center_return)")
    parser.add_argument("--band", choices=("std", "range", "none"), default="std", help="over seeds (default: std)")
    parser.add_argument("--title", metavar="TEXT", help="above the curves (default: the environment)")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.logs.plot import plot_runs
    from esker.runs.reading import read_runs

    output = Path(namespace.output)
    runs = read_runs(namespace.runs)
    plot_runs(runs, output, x=namespace.x, y=namespace.y, band=namespace.band, title=namespace.title)
    console().print(f"{output}: {len(runs)} runs", highlight=False, soft_wrap=True)
    return 0
