"""The observer that suits where a run's output goes."""

from __future__ import annotations

from rich.console import Console

from esker.logs.console import Display, Plain, Quiet
from esker.logs.notebook import Notebook


def observer_for(console: Console, quiet: bool) -> Quiet | Plain | Display | Notebook:
    """Nothing when quiet, one output in place in a notebook, a live display in a terminal, plain lines elsewhere."""
    if quiet:
        return Quiet()
    if console.is_jupyter:
        return Notebook()
    return Display(console) if console.is_terminal else Plain(console)
