"""What commands share."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from collections.abc import Callable
from typing import TYPE_CHECKING

from esker.config.flags import Parser

if TYPE_CHECKING:
    from rich.console import Console

    from esker.runs.loading import Run

Commands = _SubParsersAction  # the subparsers that `add` functions add to


def command(
    commands: Commands[Parser], name: str, run: Callable[[Namespace], int], help: str, description: str | None = None
) -> Parser:
    """Add a command; `help` is its line in the list, `description` the top of its own help."""
    parser = commands.add_parser(name, help=help, description=description or help[0].upper() + help[1:] + ".")
    parser.set_defaults(command=run, parser=parser)
    return parser


def add_trust(parser: Parser) -> None:
    """A flag that allows code named by a run folder from elsewhere."""
    text = "let a run from elsewhere import this module (or module:name), also from the current folder; repeatable"
    parser.add_argument("--trust", action="append", default=[], metavar="MODULE", help=text)


def console() -> Console:
    """The console that commands print to."""
    from rich.console import Console

    return Console()


def next_commands(run: Run) -> None:
    """Say what a finished run is good for."""
    output = console()
    output.print(f"best centre return {run.best_return:,.1f} in {run.path}", highlight=False, soft_wrap=True)
    output.print(
        f"next: esker eval {run.path}   or   esker resume {run.path} --generations N", highlight=False, soft_wrap=True
    )
