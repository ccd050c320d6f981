"""Curves of several seeds: smoothed, carried on after a goal, and aggregated where all of them have values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esker.runs.statistics import AVERAGES, bootstrap_interval

Values = NDArray[np.float64]
POINTS = 400  # of an aggregated curve; more cannot be seen on paper
CUT = 0.95  # of the longest seed: a line that ends before this gets a note
MANY_SEEDS = 5  # from here on the interquartile mean is the default
AVERAGE_NAMES = {"mean": "mean", "median": "median", "iqm": "interquartile mean"}
BAND_NAMES = {
    "std": "standard deviation, within the seeds' range",
    "range": "worst to best seed",
    "ci": "95% stratified bootstrap interval",
    "none": "",
}


@dataclass(frozen=True)
class Curve:
    """One seed's values. `ended`: it stopped because it reached its goal, so its last value is carried on."""

    x: Values
    y: Values
    ended: bool = False


@dataclass(frozen=True)
class Band:
    """Several seeds on one grid: the average, and the edges of the band around it (equal to it where there is none)."""

    x: Values
    average: Values
    low: Values
    high: Values
    carried: int  # seeds whose last value was carried on
    cut: bool  # a seed that is not finished ends the line well before the others end


def smooth(curve: Curve, strength: float) -> Curve:
    """An exponential mean, unbiased at the start; `strength` 0 leaves the curve as it is."""
    if not strength or not len(curve.y):
        return curve
    total, weight, smoothed = 0.0, 0.0, []
    for value in curve.y:
        total = strength * total + (1 - strength) * float(value)
        weight = strength * weight + (1 - strength)
        smoothed.append(total / weight)
    return Curve(curve.x, np.array(smoothed), curve.ended)


def after_zero(curve: Curve) -> Curve:
    """The part of a curve that a logarithmic axis has room for."""
    return Curve(curve.x[curve.x > 0], curve.y[curve.x > 0], curve.ended)


def common_grid(curves: Sequence[Curve]) -> Values | None:
    """Where every seed has a value: to the end of the shortest that did not reach its goal; None if that is nowhere."""
    curves = [curve for curve in curves if len(curve.x)]
    if not curves:
        return None
    unfinished = [curve.x[-1] for curve in curves if not curve.ended]
    first = max(curve.x[0] for curve in curves)
    last = min(unfinished) if unfinished else max(curve.x[-1] for curve in curves)
    if last < first:
        return None
    own = np.unique(np.concatenate([curve.x for curve in curves]))
    grid = own[(own >= first) & (own <= last)]
    return np.linspace(first, last, POINTS) if len(grid) > POINTS else grid


def aggregate(curves: Sequence[Curve], average: str = "mean", band: str = "std") -> Band | None:
    """The average of some seeds and its band, never wider than the seeds themselves; None where no stretch is common."""
    curves = [curve for curve in curves if len(curve.x)]
    grid = common_grid(curves)
    if grid is None:
        return None
    values = np.array([np.interp(grid, curve.x, curve.y) for curve in curves])  # beyond its end: its last value
    middle = AVERAGES[average](values)
    low, high = _edges(values, middle, average, band)
    lowest, highest = values.min(axis=0), values.max(axis=0)
    carried = sum(curve.ended and curve.x[-1] < grid[-1] for curve in curves)
    cut = bool(grid[-1] < CUT * max(curve.x[-1] for curve in curves))
    return Band(grid, middle, np.clip(low, lowest, highest), np.clip(high, lowest, highest), carried, cut)


def _edges(values: Values, middle: Values, average: str, band: str) -> tuple[Values, Values]:
    if band == "none" or len(values) == 1:
        return middle, middle
    if band == "range":
        return values.min(axis=0), values.max(axis=0)
    if band == "ci":
        return bootstrap_interval([values], AVERAGES[average])
    deviation = values.std(axis=0)
    return middle - deviation, middle + deviation
