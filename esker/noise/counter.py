"""Noise by counter: every direction is drawn from its own generator, in any dimension, without a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esker.noise.address import Purpose, generator
from esker.noise.directions import Row


@dataclass(frozen=True)
class CounterNoise:
    """A direction is drawn from a Philox generator of its own; no table, any dimension."""

    seed: int
    dimension: int

    def direction(self, generation: int, number: int) -> Row:
        """ε, drawn anew."""
        return generator(self.seed, Purpose.PERTURBATION, generation, number).standard_normal(
            self.dimension, dtype=np.float32
        )

    def weighted_sum(self, generation: int, weights: NDArray[np.float64]) -> Row:
        """Σ weights[k]·εₖ; directions are drawn on all cores and added in their order."""
        total = np.zeros(self.dimension, dtype=np.float32)
        scratch = np.empty_like(total)
        numbers = np.flatnonzero(weights)
        for row, weight in zip(self._draw(generation, numbers), weights[numbers], strict=True):
            total += np.multiply(row, np.float32(weight), out=scratch)
        return total

    def _draw(self, generation: int, numbers: NDArray[np.intp]) -> Iterator[Row]:
        threads = os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            for start in range(0, len(numbers), threads):
                yield from pool.map(lambda k: self.direction(generation, int(k)), numbers[start : start + threads])
