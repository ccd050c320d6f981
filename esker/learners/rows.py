"""Transitions as rows of shared memory, appended by one process and read by all; NumPy only.

The memory is a file of the run folder, or nameless. Rows are never changed once written, and how many are committed is
part of the run's snapshots: what a crash left behind them is written again.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from esker.noise.table import anonymous_memory

Rows = NDArray[np.float32]
BLOCK = 4096  # rows under one checksum
REPLAY_FILE = "replay"  # in a run folder
PAGE = mmap.PAGESIZE
RESERVE = 1 << 18  # bytes of disk that are asked for at a time
FIRST_ROWS = 1 << 16  # the memory doubles from here; untouched pages cost nothing


@dataclass(frozen=True)
class TransitionLayout:
    """The columns of a row: observation, action, reward, next observation, and 1 where the episode did not terminate."""

    observation: int
    action: int

    @property
    def width(self) -> int:
        return 2 * self.observation + self.action + 2

    @property
    def reward(self) -> int:
        return self.observation + self.action


def first_damage(path: Path, width: int, rows: range, sums: Sequence[int]) -> int | None:
    """The first of some rows whose block does not have its checksum."""
    with path.open("rb") as file:
        for block in range(rows.start // BLOCK, -(-rows.stop // BLOCK)):
            file.seek(block * BLOCK * width * 4)
            data = file.read((min(rows.stop, (block + 1) * BLOCK) - block * BLOCK) * width * 4)
            if block >= len(sums) or zlib.crc32(data) != sums[block]:
                return block * BLOCK
    return None


class SharedRows:
    """A growing matrix in a file that several processes map; one of them appends."""

    def __init__(self, descriptor: int, width: int) -> None:
        self.descriptor = descriptor
        self.width = width
        self.mapped: Rows = np.empty((0, width), dtype=np.float32)
        self._map: mmap.mmap | None = None
        self._reserved = 0  # bytes

    @classmethod
    def create(cls, path: Path | None, width: int) -> SharedRows:
        """Rows in a file, whose earlier content is kept, or in anonymous memory that ends with its processes."""
        if path is None:
            return cls(anonymous_memory(0), width)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        os.set_inheritable(descriptor, True)
        return cls(descriptor, width)

    def reserve(self, first: int, count: int) -> None:
        """Make room on the disk for the rows from `first` on, before `count`. A full disk raises OSError.

        Without it, writing into the map of a file that cannot grow ends the process (SIGBUS).
        """
        start, stop = max(first * self.width * 4, self._reserved), count * self.width * 4
        if start < stop and hasattr(os, "posix_fallocate"):
            end = -(-stop // RESERVE) * RESERVE
            os.posix_fallocate(self.descriptor, start, end - start)
            self._reserved = end

    def first(self, count: int) -> Rows:
        """The first rows, as a view of the shared memory."""
        if count > len(self.mapped):
            self._remap(count)
        return self.mapped[:count]

    def _remap(self, count: int) -> None:
        rows = max(FIRST_ROWS, 1 << (count - 1).bit_length())
        size = rows * self.width * 4
        if os.fstat(self.descriptor).st_size < size:
            os.ftruncate(self.descriptor, size)
        self._map = mmap.mmap(self.descriptor, size)
        self.mapped = np.frombuffer(self._map, dtype=np.float32).reshape(rows, self.width)

    def forget(self, first: int, count: int) -> None:
        """Free the memory of rows that will not be read again: those from `first` on, before `count`. Linux only."""
        start, stop = (-(-first * self.width * 4 // PAGE) * PAGE, count * self.width * 4 // PAGE * PAGE)
        if self._map is not None and start < stop and hasattr(mmap, "MADV_REMOVE"):
            self._map.madvise(mmap.MADV_REMOVE, start, stop - start)

    def sums(self, count: int, known: Sequence[int] = (), covered: int = 0) -> list[int]:
        """A checksum of every block of the first rows; those `known` (of `covered` rows) are not computed again."""
        whole = min(len(known), covered // BLOCK, count // BLOCK)
        data = self.first(count)
        return [*known[:whole], *(zlib.crc32(data[at : at + BLOCK].data) for at in range(whole * BLOCK, count, BLOCK))]

    def sync(self) -> None:
        """Return when everything written is on the disk."""
        if self._map is not None:
            self._map.flush()
        os.fsync(self.descriptor)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.descriptor)
