"""Results as arrays: what a node returns, in a few buffers instead of thousands of objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esker.tasks.task import Result


@dataclass(frozen=True)
class Packed:
    """Results in columns; statistics and errors only for the rows that have them."""

    items: NDArray[np.int64]
    fitness: NDArray[np.float64]
    totals: NDArray[np.float64]
    lengths: NDArray[np.int64]
    counted: NDArray[np.int64]  # rows with statistics
    statistics: NDArray[np.float64]  # (rows, 2, observation)
    errors: dict[int, tuple[str, str]]


def pack(results: Sequence[Result]) -> Packed:
    """The results in columns, in their order."""
    counted = [row for row, result in enumerate(results) if result.statistics is not None]
    return Packed(
        np.array([result.item for result in results], dtype=np.int64),
        np.array([result.fitness for result in results], dtype=np.float64),
        np.array([result.total for result in results], dtype=np.float64),
        np.array([result.length for result in results], dtype=np.int64),
        np.array(counted, dtype=np.int64),
        np.array([results[row].statistics for row in counted], dtype=np.float64),
        {row: (result.error, result.trace) for row, result in enumerate(results) if result.error is not None},
    )


def unpack(packed: Packed) -> list[Result]:
    """The results, bit by bit what was packed."""
    columns = (packed.items.tolist(), packed.fitness.tolist(), packed.totals.tolist(), packed.lengths.tolist())
    results = [Result(*row) for row in zip(*columns, strict=True)]
    for row, statistics in zip(packed.counted.tolist(), packed.statistics, strict=True):
        results[row] = results[row]._replace(statistics=statistics)
    for row, (error, trace) in packed.errors.items():
        results[row] = results[row]._replace(error=error, trace=trace)
    return results
