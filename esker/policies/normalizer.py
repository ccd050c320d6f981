"""Observation statistics: float64 sums that all episodes share, frozen within a generation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esker.policies.network import Batch

Sums = NDArray[np.float64]
VARIANCE_FLOOR = 1e-2
CLIP = 5.0
_LOW, _HIGH = (
    np.array(-CLIP, dtype=np.float32),
    np.array(CLIP, dtype=np.float32),
)  # arrays: a number would be converted every time


@dataclass(frozen=True)
class Normalizer:
    """(observation - mean)/std, clipped to ±5: what a generation is evaluated with."""

    mean: Sums
    inverse_std: Sums

    def __call__(self, observations: NDArray[np.float64]) -> Batch:
        return self.into(observations, np.empty_like(observations), np.empty(observations.shape, dtype=np.float32))

    def into(self, observations: NDArray[np.float64], scratch: NDArray[np.float64], out: Batch) -> Batch:
        """The same, written to `out`. What is clipped after rounding to float32 has the bits of what was clipped before."""
        np.subtract(observations, self.mean, out=scratch)
        np.multiply(scratch, self.inverse_std, out=scratch)
        np.copyto(out, scratch, casting="same_kind")
        return out.clip(_LOW, _HIGH, out)


@dataclass(frozen=True)
class Statistics:
    """How many observations were seen, their sum and their sum of squares."""

    count: int
    total: Sums
    squares: Sums

    @classmethod
    def empty(cls, size: int) -> Statistics:
        """Nothing seen yet: the normaliser is the identity."""
        return cls(0, np.zeros(size), np.zeros(size))

    def plus(self, count: int, total: Sums, squares: Sums) -> Statistics:
        """These and some more observations."""
        return Statistics(self.count + count, self.total + total, self.squares + squares)

    def normalizer(self) -> Normalizer:
        """The normaliser for the next generation; variance is floored at 1e-2."""
        if self.count == 0:
            return Normalizer(np.zeros_like(self.total), np.ones_like(self.total))
        mean = self.total / self.count
        variance = np.maximum(self.squares / self.count - mean**2, VARIANCE_FLOOR)
        return Normalizer(mean, 1.0 / np.sqrt(variance))
