"""A copy of a run folder's essentials, kept by a node that is not the coordinator's: facts, snapshots, configuration."""

from __future__ import annotations

import tempfile
from typing import IO

from esker.system import clock


class Replica:
    """Facts grow in an anonymous file, so that nothing is left behind; the other files are small."""

    def __init__(self) -> None:
        self._lock = clock.Lock()
        self._files: dict[str, bytes] = {}
        self._facts: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the node is
        self._length = 0

    @property
    def length(self) -> int:
        """How many bytes of facts there are: the newest copy is the longest."""
        with self._lock:
            return self._length

    def store(self, files: dict[str, bytes], facts_at: int, facts: bytes) -> int:
        """Take files and a piece of the facts in; a piece behind a gap is not. Returns the length of the facts."""
        with self._lock:
            if facts_at <= self._length:
                self._facts.seek(facts_at)
                self._facts.write(facts)
                self._facts.truncate()
                self._facts.flush()
                self._length = facts_at + len(facts)
                if files:
                    self._files = files
            return self._length

    def files(self) -> dict[str, bytes]:
        """Everything, by path inside the run folder."""
        with self._lock:
            self._facts.seek(0)
            return self._files | {"facts": self._facts.read(self._length)}
