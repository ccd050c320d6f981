"""What the examples share as commands: `--help`, numbers that are checked, errors in one line."""

from __future__ import annotations

import argparse
import math
import sys
from typing import NoReturn, Self


class Command(argparse.ArgumentParser):
    """A parser that shows an example's docstring as its help, and refuses in one line with status 2."""

    def __init__(self, description: str | None) -> None:
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)

    def number(self, name: str, default: float, help: str) -> Self:
        """A number above zero that may be left out; whole where its default is."""
        kind = count if isinstance(default, int) else amount
        self.add_argument(name, nargs="?", type=kind, default=default, help=f"{help} (default: {default})")
        return self

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and leave."""
        print(f"{self.prog}: error: {message}", file=sys.stderr)
        sys.exit(2)

    def cuda(self, wanted: bool) -> str:
        """The device; a GPU that is not there is refused."""
        import torch

        if wanted and not torch.cuda.is_available():
            self.error("--cuda: no GPU can be used here; leave it out")
        return "cuda" if wanted else "cpu"


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def amount(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
