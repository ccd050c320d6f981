"""The seam between slots and simulators: n worlds that are stepped together, one a row.

Rows 0..count-1 are stepped; a row is reset by its own seed at any time, and two rows may change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from esker.errors import named_line


class Ended(NamedTuple):
    """A row whose episode ended, and the error that ended it if one did, with its trace."""

    row: int
    error: str | None = None
    trace: str = ""


class Watch(NamedTuple):
    """Where worlds that are stepped one by one report progress: `board[1]` is the item of the row being stepped."""

    board: Any  # a list or a memoryview of integers
    items: list[int]  # of each row


class Worlds(Protocol):
    """Many environments as rows of arrays."""

    @property
    def limit(self) -> int | None:
        """Steps after which an episode is truncated, where the caller must count them; known after the first reset."""
        ...

    def reset(self, row: int, seed: int) -> Any:
        """Begin an episode in a row; returns its first observation. Exceptions of the environment pass through."""
        ...

    def step(self, actions: Any, count: int, observations: Any) -> tuple[Sequence[float], list[Ended]]:
        """Step rows 0..count-1 with an action each.

        Writes their observations into the rows of `observations`; returns their rewards and the rows whose episode ended.
        """
        ...

    def swap(self, row: int, other: int) -> None:
        """Let the environments of two rows change places."""
        ...

    def close(self) -> None: ...


def describe_error(error: BaseException) -> str:
    """An error in one line."""
    return named_line(error)
