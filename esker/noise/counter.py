"""Noise by counter: every direction is drawn from its own generator, in any dimension, without a table."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from esker.noise.address import Purpose, fill_normals, keys, normals
from esker.noise.directions import SMALL, Vector, Weights, small_moments

if TYPE_CHECKING:
    import torch

CHUNK = 1 << 17  # numbers that a thread draws at a time; fewer cost more in waking it


@dataclass(frozen=True)
class CounterNoise:
    """A direction is drawn from its own Philox generator; no table, any dimension."""

    seed: int
    dimension: int

    def direction(self, generation: int, number: int) -> Vector:
        """ε, drawn again at every call."""
        return normals(self.dimension, self.seed, Purpose.PERTURBATION, generation, number)

    def directions(self, generation: int, numbers: NDArray[np.int64]) -> Vector:
        """Several directions as new rows."""
        last = int(numbers[-1]) + 1
        if last == len(numbers) and last * self.dimension <= SMALL:
            return torch_rows(self.seed, self.dimension, generation, last).numpy()[numbers]
        return np.stack([self.direction(generation, int(number)) for number in numbers])

    def weighted_sum(self, generation: int, weights: Weights) -> Vector:
        """Σ weights[k]·εₖ; directions are drawn on all cores and added in their order."""
        total = np.zeros(self.dimension, dtype=np.float32)
        scratch = np.empty_like(total)
        numbers = np.flatnonzero(weights)
        for row, weight in zip(self._draw(generation, numbers), weights[numbers], strict=True):
            total += np.multiply(row, np.float32(weight), out=scratch)
        return total

    def weighted_moments(self, generation: int, linear: Weights, square: Weights) -> tuple[Vector, Vector]:
        """Σ linear[k]·εₖ and Σ square[k]·εₖ² from one drawing of the directions."""
        if len(linear) * self.dimension <= SMALL:
            return small_moments(torch_rows(self.seed, self.dimension, generation, len(linear)), linear, square)
        numbers = np.flatnonzero((linear != 0) | (square != 0))
        first, second = np.zeros((2, self.dimension), dtype=np.float32)
        scratch = np.empty_like(first)
        for row, one, two in zip(self._draw(generation, numbers), linear[numbers], square[numbers], strict=True):
            first += np.multiply(row, np.float32(one), out=scratch)
            np.multiply(row, row, out=row)
            second += np.multiply(row, np.float32(two), out=scratch)
        return first, second

    def _draw(self, generation: int, numbers: NDArray[np.intp]) -> Iterator[Vector]:
        """The directions in their order; threads draw some ahead."""
        if len(numbers) * self.dimension <= SMALL:  # drawn faster than threads start
            yield from (self.direction(generation, int(k)) for k in numbers)
            return
        threads, each = os.cpu_count() or 1, max(1, CHUNK // self.dimension)
        parts = (numbers[start : start + each] for start in range(0, len(numbers), each))
        with ThreadPoolExecutor(threads) as pool:
            ahead = deque(pool.submit(self._rows, generation, part) for part in islice(parts, threads + 1))
            while ahead:
                rows = ahead.popleft().result()
                ahead.extend(pool.submit(self._rows, generation, part) for part in islice(parts, 1))
                yield from rows

    def _rows(self, generation: int, numbers: NDArray[np.intp]) -> Vector:
        rows = np.empty((len(numbers), self.dimension), dtype=np.float32)
        fill_normals(rows, keys(self.seed, Purpose.PERTURBATION, generation, numbers).tolist())
        return rows


@lru_cache(maxsize=2)
def torch_rows(seed: int, dimension: int, generation: int, count: int) -> torch.Tensor:
    """The first directions of a small generation, kept between ask and tell."""
    import torch

    rows = torch.empty(count, dimension)
    fill_normals(rows.numpy(), keys(seed, Purpose.PERTURBATION, generation, np.arange(count)).tolist())
    return rows
