"""Noise from a table: one block of normals per machine, and directions that are slices of it."""

from __future__ import annotations

import mmap
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from esker.noise.address import Purpose, first_keys, generator, key, keys
from esker.noise.directions import SMALL, Vector, Weights, small_moments
from esker.system.room import refuse_beyond_memory

if TYPE_CHECKING:
    import torch

BLOCK = 1 << 20  # normals drawn from one address when a table is filled
ALIGN = 16  # offsets are multiples of a cache line
DEFAULT_TABLE_SIZE = 25_000_000


class NoiseTable:
    """One block of float32 normals per machine, in memory that no file names, so that nothing can leak."""

    def __init__(self, descriptor: int, size: int, writable: bool = False) -> None:
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self.descriptor = descriptor
        self.size = size
        self._map = mmap.mmap(descriptor, size * 4, access=access)
        self.values: Vector = np.frombuffer(self._map, dtype=np.float32)

    @classmethod
    def create(cls, seed: int, size: int) -> NoiseTable:
        """Fill a new table from its seed, block by block on every core; equal seeds give equal bits."""
        refuse_beyond_memory(4 * size, f"table_size is {size:,}", "use a smaller table, or --noise counter")
        table = cls(anonymous_memory(size * 4), size, writable=True)

        def fill(block: int) -> None:
            part = table.values[block * BLOCK : (block + 1) * BLOCK]
            generator(seed, Purpose.TABLE, block).standard_normal(dtype=np.float32, out=part)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(fill, range(-(-size // BLOCK))))
        return cls(table.descriptor, size)

    @classmethod
    def of_process(cls, pid: int, descriptor: int, seed: int, size: int) -> NoiseTable | None:
        """The table that another process of this machine holds; None unless it is there and begins as the seed's does."""
        try:
            path = f"/proc/{pid}/fd/{descriptor}"
            if not os.readlink(path).startswith("/memfd:") or os.stat(path).st_size != size * 4:
                return None
            table = cls(os.open(path, os.O_RDONLY), size)
        except OSError:  # another machine's, another user's, gone, or a system without /proc
            return None
        first = generator(seed, Purpose.TABLE, 0).standard_normal(min(BLOCK, size), dtype=np.float32)
        if np.array_equal(table.values[:BLOCK], first):
            return table
        os.close(table.descriptor)
        return None

    def close(self) -> None:
        """Give the descriptor back; the memory goes when the last process that maps it does."""
        os.close(self.descriptor)


def anonymous_memory(size: int) -> int:
    """A file descriptor of shareable memory without a name (a memfd; elsewhere a file that is unlinked at once)."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("esker")
    else:
        descriptor, path = tempfile.mkstemp(prefix="esker")
        os.unlink(path)
    os.ftruncate(descriptor, size)
    os.set_inheritable(descriptor, True)
    return descriptor


@dataclass(frozen=True)
class TableNoise:
    """A direction is a slice of the shared table at an addressed offset."""

    table: NoiseTable
    seed: int
    dimension: int

    def __post_init__(self) -> None:
        if self.dimension > self.table.size:
            raise ValueError(
                f"a table of {self.table.size:,} normals is too small for {self.dimension:,} parameters; "
                "enlarge it (table_size) or use counter noise"
            )

    @property
    def places(self) -> int:
        """How many offsets a direction can have; they are multiples of ALIGN."""
        return (self.table.size - self.dimension) // ALIGN + 1

    @cached_property
    def _windows(self) -> Vector:
        return np.lib.stride_tricks.sliding_window_view(self.table.values, self.dimension)

    def offsets(self, generation: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the directions of some numbers begin in the table."""
        chosen = keys(self.seed, Purpose.PERTURBATION, generation, numbers) % np.uint64(self.places)
        return chosen.astype(np.int64) * ALIGN

    def direction(self, generation: int, number: int) -> Vector:
        """ε as a view of the table."""
        offset = key(self.seed, Purpose.PERTURBATION, generation, number) % self.places * ALIGN
        return self.table.values[offset : offset + self.dimension]

    def directions(self, generation: int, numbers: NDArray[np.int64]) -> Vector:
        """Several slices, copied out of the table in one pass."""
        if self._small(len(numbers)) and int(numbers[-1]) + 1 == len(numbers):
            return self._first(generation, len(numbers)).numpy().copy()
        return self._windows[self.offsets(generation, numbers)]

    def weighted_sum(self, generation: int, weights: Weights) -> Vector:
        """Σ weights[k]·εₖ; torch's element-wise add gives the same bits on any number of threads."""
        return self.partial_sum(generation, weights, 0, self.dimension)

    def weighted_moments(self, generation: int, linear: Weights, square: Weights) -> tuple[Vector, Vector]:
        """Σ linear[k]·εₖ and Σ square[k]·εₖ² in one pass, with the same bits on any number of threads."""
        import torch

        if self._small(len(linear)):
            return small_moments(self._first(generation, len(linear)), linear, square)
        numbers = np.flatnonzero((linear != 0) | (square != 0))
        linear, square = linear[numbers], square[numbers]
        values = as_torch(self.table.values)
        first, second, scratch = torch.zeros(3, self.dimension)
        offsets = self.offsets(generation, numbers).tolist()
        for offset, one, two in zip(offsets, linear.tolist(), square.tolist(), strict=True):
            row = values[offset : offset + self.dimension]
            first.add_(row, alpha=one)
            second.add_(torch.mul(row, row, out=scratch), alpha=two)
        return first.numpy(), second.numpy()

    def _small(self, count: int) -> bool:
        return 0 < count * self.dimension <= SMALL

    def _first(self, generation: int, count: int) -> torch.Tensor:
        """The first directions of a small generation, kept between ask and tell."""
        import torch

        if (kept := self._kept.get((generation, count))) is not None:
            return kept
        rows = torch.empty(count, self.dimension)
        chosen = first_keys(count, self.seed, Purpose.PERTURBATION, generation) % np.uint64(self.places)
        rows.numpy()[:] = self._windows[chosen.astype(np.int64) * ALIGN]
        self._kept.clear()
        self._kept[generation, count] = rows
        return rows

    @cached_property
    def _kept(self) -> dict[tuple[int, int], torch.Tensor]:
        return {}

    def partial_sum(self, generation: int, weights: Weights, start: int, stop: int) -> Vector:
        """The coordinates from `start` to `stop` of the weighted sum: the same bits as in the whole."""
        import torch

        numbers = np.flatnonzero(weights)
        offsets = self.offsets(generation, numbers)
        values = as_torch(self.table.values)
        total = torch.zeros(stop - start)
        for offset, weight in zip(offsets.tolist(), weights[numbers].tolist(), strict=True):
            total.add_(values[offset + start : offset + stop], alpha=weight)
        return total.numpy()


def as_torch(values: Vector):  # type: ignore[no-untyped-def]  # torch is imported only where an update happens
    """The values as a tensor that shares their memory."""
    import warnings

    import torch

    with warnings.catch_warnings():  # the table is read-only on purpose and never written through torch
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(values)
