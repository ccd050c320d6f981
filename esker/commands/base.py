"""What commands share."""

from __future__ import annotations

from argparse import Namespace, _SubParsersAction
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from esker.config.flags import Parser
from esker.errors import UsageError

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
    """`--trust`: allow code that a run folder from elsewhere names."""
    text = "allow a run from elsewhere to import it; repeatable"
    parser.add_argument("--trust", action="append", default=[], metavar="MODULE", help=text)


def console() -> Console:
    """The console that commands print to."""
    from rich.console import Console

    return Console(markup=False, emoji=False)  # a path may contain [/], which is not markup


def run_path(text: str) -> str:
    """The run that an argument names: a folder, hf://owner/name, a preset's policy, or `latest` under runs/.

    One that does not exist raises UsageError.
    """
    if text != "latest" or Path(text).exists():
        from esker.runs.places import place

        return str(place(text))
    from esker.runs.listing import list_runs

    found = list_runs(Path("runs")) if Path("runs").is_dir() else []
    if not found:
        raise UsageError("latest is the newest run under runs/, and there is none; `esker train ENV` makes one")
    return min(found, key=lambda run: run.age).path


def next_commands(run: Run) -> None:
    """Print the result of a finished run and what to do next."""
    from esker.algorithms import registry

    output, best, of_python = console(), run.best_return, run.folder.algo in registry.OF_PYTHON
    if best is None and run.folder.rows():
        text = f"no centre could be evaluated in {run.path}: at least half of its episodes failed in every generation"
        output.print(text, highlight=False, soft_wrap=True)
        return
    if best is None:
        text = f"no generation was completed in {run.path}; episodes may be endless: try --max-episode-steps"
        output.print(text, highlight=False, soft_wrap=True)
        return
    text = f"reward {best:,.4g}" if of_python else _best_text(run, best)
    output.print(f"best: {text}, in {run.path}", highlight=False, soft_wrap=True)
    look = "report" if of_python else "eval"  # a model of esker.Evolution is not a policy
    text = f"next: esker {look} {run.path}   or   esker resume {run.path} --generations N"
    output.print(text, highlight=False, soft_wrap=True)


def _best_text(run: Run, best: float) -> str:
    """The best return, and whose it is: of the best checkpoint alone where the run's end evaluated it."""
    from esker.runs.checkpoints import pointed
    from esker.system.words import count

    played = run.folder.judged_rows()[-1].get("best_episodes")
    if played is None:
        return f"running mean of the centre's returns {best:,.1f}"
    return f"checkpoint {pointed(run.folder.best_file)}, mean return {best:,.1f} in {count(played, 'new episode')}"
