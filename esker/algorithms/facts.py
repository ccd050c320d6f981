"""Facts: what leaves a generation. A run that commits them can recompute every state without simulating anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Facts:
    """What left one generation. Arrays are in member order; a failed member has fitness -inf and return NaN."""

    generation: NDArray[np.int64]
    fitness: NDArray[np.float64]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int32]
    center_returns: NDArray[np.float64]
    center_lengths: NDArray[np.int32]
    statistics_count: NDArray[np.int64]
    statistics_total: NDArray[np.float64]
    statistics_squares: NDArray[np.float64]
    discarded_steps: NDArray[np.int64]
    seconds: NDArray[np.float64]
