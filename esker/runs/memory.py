"""A run that is kept in memory only: the methods of a run folder, without files."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from esker.algorithms.facts import Facts
from esker.algorithms.observer import Row
from esker.algorithms.snapshot import Snapshot


class MemoryRun:
    """Commits nothing; what matters of the run is in its state."""

    path = Path()  # nothing is written
    on_checkpoint: Any = None

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def about(self) -> dict[str, Any]:
        """Nothing is remembered of how it began."""
        return {}

    def rows(self) -> list[Row]:
        """The rows so far."""
        return list(self._rows)

    def write_row(self, row: Row) -> None:
        """A row of the journal."""
        self._rows.append(row)

    def commit(self, facts: Facts) -> None:
        """A generation is over."""

    def write_final(self, reading: dict[str, Any]) -> None:
        """What was seen of the last centre."""

    def concluded(self, generation: int) -> bool:
        """What was seen of the last centre is not kept."""
        return False

    def write_config(self, config: Any) -> None:
        """The options of what follows."""

    def write_status(self, text: str) -> None:
        """The run's status."""

    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None:
        """A snapshot is due."""

    def prune(self, keep: int | None, spared: Collection[int] = ()) -> None:
        """Old snapshots may go."""

    def stored(self, generation: int) -> Snapshot | None:
        """No snapshot is kept."""
        return None

    def lock(self) -> None:
        """No other process can use it."""

    def unlock(self) -> None:
        """No other process can use it."""
