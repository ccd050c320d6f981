"""Statistics over seeds: interquartile mean, median, worst, and stratified bootstrap intervals, as rliable defines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Statistic = Callable[[Values], Values]
RESAMPLES = 2000
CONFIDENCE = 0.95


def interquartile_mean(values: Values) -> Values:
    """The mean of the middle half along the first axis: floor(n / 4) values are cut from each end."""
    cut = len(values) // 4
    return np.asarray(np.sort(values, axis=0)[cut : len(values) - cut].mean(axis=0))


def mean(values: Values) -> Values:
    """The mean along the first axis."""
    return np.asarray(values.mean(axis=0))


def median(values: Values) -> Values:
    """The median along the first axis."""
    return np.asarray(np.median(values, axis=0))


AVERAGES: dict[str, Statistic] = {"mean": mean, "median": median, "iqm": interquartile_mean}


def bootstrap_interval(
    strata: Sequence[Values], statistic: Statistic = interquartile_mean, resamples: int = RESAMPLES
) -> tuple[Values, Values]:
    """The percentile interval of a statistic, runs resampled with replacement within each stratum (task).

    A stratum has a run in each row. The statistic sees the rows of all strata together. The draw is seeded: equal runs
    give equal intervals.
    """
    generator = np.random.default_rng(0)
    drawn = []
    for _ in range(resamples):
        parts = [stratum[generator.integers(len(stratum), size=len(stratum))] for stratum in strata]
        drawn.append(statistic(np.concatenate(parts)))
    edge = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(np.array(drawn), [edge, 100 - edge], axis=0)
    return low, high


@dataclass(frozen=True)
class SeedSummary:
    """One number of every seed, summarised. `low` and `high` bound the interquartile mean with 95% confidence."""

    seeds: int
    iqm: float
    low: float
    high: float
    median: float
    worst: float
    best: float

    def text(self) -> str:
        """The summary in one line."""
        interval = f" [{self.low:,.1f}, {self.high:,.1f}]" if self.seeds > 1 else ""
        return f"interquartile mean {self.iqm:,.1f}{interval}  median {self.median:,.1f}  worst {self.worst:,.1f}"


def summarize_seeds(values: Sequence[float]) -> SeedSummary:
    """The summary of one value a seed; there must be at least one."""
    array = np.asarray(values, dtype=np.float64)
    low, high = bootstrap_interval([array])
    return SeedSummary(
        seeds=len(array),
        iqm=float(interquartile_mean(array)),
        low=float(low),
        high=float(high),
        median=float(np.median(array)),
        worst=float(array.min()),
        best=float(array.max()),
    )
