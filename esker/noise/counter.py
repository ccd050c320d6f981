"""Noise by counter: every direction is drawn from its own generator, in any dimension, without a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esker.noise.address import Purpose, normals
from esker.noise.directions import SMALL, Row, Weights, small_moments


@dataclass(frozen=True)
class CounterNoise:
    """A direction is drawn from a Philox generator of its own; no table, any dimension."""

    seed: int
    dimension: int

    def direction(self, generation: int, number: int) -> Row:
        """ε, drawn anew."""
        return normals(self.dimension, self.seed, Purpose.PERTURBATION, generation, number)

    def weighted_sum(self, generation: int, weights: Weights) -> Row:
        """Σ weights[k]·εₖ; directions are drawn on all cores and added in their order."""
        total = np.zeros(self.dimension, dtype=np.float32)
        scratch = np.empty_like(total)
        numbers = np.flatnonzero(weights)
        for row, weight in zip(self._draw(generation, numbers), weights[numbers], strict=True):
            total += np.multiply(row, np.float32(weight), out=scratch)
        return total

    def weighted_moments(self, generation: int, linear: Weights, square: Weights) -> tuple[Row, Row]:
        """Σ linear[k]·εₖ and Σ square[k]·εₖ² from one drawing of the directions."""
        numbers = np.flatnonzero((linear != 0) | (square != 0))
        if len(numbers) * self.dimension <= SMALL:
            rows = np.empty((len(numbers), self.dimension), dtype=np.float32)
            for row, number in zip(rows, numbers.tolist(), strict=True):
                row[:] = self.direction(generation, number)
            return small_moments(rows, linear[numbers], square[numbers])
        first, second = np.zeros((2, self.dimension), dtype=np.float32)
        scratch = np.empty_like(first)
        for row, one, two in zip(self._draw(generation, numbers), linear[numbers], square[numbers], strict=True):
            first += np.multiply(row, np.float32(one), out=scratch)
            np.multiply(row, row, out=row)
            second += np.multiply(row, np.float32(two), out=scratch)
        return first, second

    def _draw(self, generation: int, numbers: NDArray[np.intp]) -> Iterator[Row]:
        threads = os.cpu_count() or 1
        if len(numbers) * self.dimension <= SMALL:  # sooner drawn than threads are started
            yield from (self.direction(generation, int(k)) for k in numbers)
            return
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, len(numbers), threads):
                yield from pool.map(lambda k: self.direction(generation, int(k)), numbers[start : start + threads])
