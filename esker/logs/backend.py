"""A logging back-end: where rows of the journal also go."""

from __future__ import annotations

from typing import Any, Protocol

from esker.algorithms.observer import Returns, Row
from esker.runs.folder import RunFolder


class BackendError(Exception):
    """A back-end cannot work; the message gives the whole reason."""


class Backend(Protocol):
    """Where rows of the journal also go. It may raise anything: the fan-out drops it then."""

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> str | None:
        """Open, and write the earlier rows that are missing; returns a notice, or None."""
        ...

    def generation(self, row: Row, returns: Returns | None) -> None: ...
    def end(self, reason: str) -> None: ...
