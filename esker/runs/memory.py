"""A run that is kept in memory only: what a run folder does for its loop, done nowhere."""

from __future__ import annotations

from typing import Any

from esker.algorithms.facts import Facts
from esker.algorithms.snapshot import Snapshot


class MemoryRun:
    """Commits nothing; what matters of the run is in its state."""

    def commit(self, facts: Facts) -> None:
        """A generation is over."""

    def write_row(self, row: dict[str, Any]) -> None:
        """A row of the journal."""

    def write_final(self, reading: dict[str, Any]) -> None:
        """What was seen of the last centre."""

    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None:
        """A snapshot is due."""

    def prune(self, keep: int | None) -> None:
        """Old snapshots may go."""
