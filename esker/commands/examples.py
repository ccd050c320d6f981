"""`esker examples`."""

from __future__ import annotations

import shutil
from argparse import Namespace
from pathlib import Path

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser
from esker.errors import UsageError

PACKAGE = Path(__file__).parent.parent
FOLDER = PACKAGE / "examples" if (PACKAGE / "examples").is_dir() else PACKAGE.parent / "examples"  # installed, or a checkout
SHARED = "command.py"  # what the others import


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "examples", run, "list the examples, or copy them")
    parser.add_argument("--copy", nargs="?", const="examples", metavar="FOLDER", help="copy all to FOLDER (examples)")


def run(namespace: Namespace) -> int:
    """Run the command."""
    if not FOLDER.is_dir():
        raise UsageError(f"the examples are not in {str(FOLDER)!r}; install esker from its wheel, sdist or a checkout")
    files = sorted(path for path in FOLDER.rglob("*") if path.suffix in (".py", ".ipynb", ".toml"))
    if namespace.copy is not None:
        return _copy(files, Path(namespace.copy))
    from esker.logs.tables import print_table

    rows = [(str(path.relative_to(FOLDER)), _about(path)) for path in files if path.name != SHARED]
    print_table(console(), ("example", "about"), rows, prose=("about",))
    console().print("to copy them: esker examples --copy", highlight=False, soft_wrap=True)
    return 0


def _copy(files: list[Path], target: Path) -> int:
    if target.exists():
        raise UsageError(f"copy is {str(target)!r}, which exists; name a new folder, as esker examples --copy my-examples")
    for file in files:
        copy = target / file.relative_to(FOLDER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    console().print(f"copied to {target}; next: python {target}/functions.py", highlight=False, soft_wrap=True)
    return 0


def _about(path: Path) -> str:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    return first.strip('"# ') if path.suffix != ".ipynb" else "a notebook"
