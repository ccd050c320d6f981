"""Observers of a run: the console, loggers, a viewer on another machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from esker.engines.engine import Pulse

Row = dict[str, Any]  # one line of the journal
Returns = NDArray[np.float64]


Pulsing = Callable[[], Pulse | None]  # asked from another thread; None: no generation is under way


@runtime_checkable
class Pulsed(Protocol):
    """An observer that also shows the generation under way."""

    def pulse(self, source: Pulsing | None) -> None:
        """The source of its progress; None: there is none any more."""
        ...


class Observer(Protocol):
    """Follows a run."""

    def begin(self, config: Any, folder: Any, rows: list[Row]) -> None:
        """The run starts, or resumes after `rows`."""
        ...

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """A generation was committed; `returns` are its members', where there are any."""
        ...

    def note(self, text: str) -> None:
        """A notice for the user."""
        ...

    def end(self, reason: str) -> None:
        """The run ended."""
        ...
