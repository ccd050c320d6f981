"""Whoever watches a run go by: the console, loggers, a viewer on another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Row = dict[str, Any]  # one line of the journal
Returns = NDArray[np.float64]


class Place(Protocol):
    """Where a run lives."""

    @property
    def path(self) -> Path: ...


class Observer(Protocol):
    """Sees a run go by."""

    def begin(self, config: Any, folder: Any, rows: list[Row]) -> None:
        """The run begins, or goes on after `rows`."""
        ...

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """A generation was committed; `returns` are its members', where there are any."""
        ...

    def note(self, text: str) -> None:
        """Something worth knowing happened."""
        ...

    def end(self, reason: str) -> None:
        """The run ended."""
        ...
