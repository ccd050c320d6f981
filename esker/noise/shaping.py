"""Fitness to weights: plain functions of the fitness of one generation.

Ties share the mean of the weights of the places they occupy, so equal fitness everywhere gives weights whose gradient is
exactly zero. A fitness of -inf marks a member that failed: it ranks below every other, and value-based shapings count
it as the worst finite fitness.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esker.errors import RunError, UsageError, named_line, nearest
from esker.system.imports import import_callable

Floats = NDArray[np.float64]


def running_total(by_rank: Floats) -> Floats:
    """Σ of the weights before each place, and of all."""
    return np.concatenate([[0.0], np.cumsum(by_rank)])


def average_by_ties(fitness: Floats, total: Floats) -> Floats:
    """Hand out weights by ascending fitness, worst place first; equal fitness gets the mean of its places.

    `total` is their `running_total`.
    """
    order = fitness.argsort(kind="stable")
    ordered = fitness[order]
    if (ordered[1:] != ordered[:-1]).all():  # no ties: every place has its own weight
        weights = np.empty_like(total[1:])
        weights[order] = total[1:] - total[:-1]
        return weights
    _, group, count = np.unique(fitness, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return ((total[last] - total[last - count]) / count)[group]


def _finite(fitness: Floats) -> Floats:
    return np.where(np.isneginf(fitness), fitness[np.isfinite(fitness)].min(), fitness)


def centered_rank(fitness: Floats) -> Floats:
    """Rank 0..N-1 divided by N-1, minus ½ (Salimans et al. 2017)."""
    # Integer ranks summed before the division: ties and symmetric places come out exact.
    n = len(fitness)
    doubled = average_by_ties(fitness, _doubled_ranks(n))
    return doubled / (2.0 * max(n - 1, 1))


@lru_cache(maxsize=8)
def _doubled_ranks(n: int) -> Floats:
    return running_total(np.arange(1.0 - n, n, 2.0))


def normalized(fitness: Floats) -> Floats:
    """(F - mean)/std with ddof 0; zero when all are equal."""
    fitness = _finite(fitness)
    centered = raw(fitness)
    std = np.sqrt(np.mean(centered**2))
    return centered / std if std > 0 else np.zeros_like(fitness)


def log_utility(fitness: Floats) -> Floats:
    """max(0, log2(N/2+1) - log2(rank)), rank 1 the best, normalised to sum 1, minus 1/N (Wierstra et al. 2014)."""
    if fitness.min() == fitness.max():
        return np.zeros(len(fitness))
    return average_by_ties(fitness, _log_utilities(len(fitness)))


@lru_cache(maxsize=8)
def _log_utilities(n: int) -> Floats:
    rank = np.arange(n, 0, -1)  # worst place first
    utility = np.maximum(0.0, np.log2(n / 2 + 1) - np.log2(rank))
    return running_total(utility / utility.sum() - 1.0 / n)


def raw(fitness: Floats) -> Floats:
    """F minus its mean."""
    fitness = _finite(fitness)
    if np.ptp(fitness) == 0:  # the mean of equal numbers may round away from them
        return np.zeros_like(fitness)
    return fitness - fitness.mean()


# `sign` and `centered_sign_rank` are fed the sum of the signs of each step's reward as fitness.
SHAPINGS: dict[str, Callable[[Floats], Floats]] = {
    "centered_rank": centered_rank,
    "normalized": normalized,
    "log_utility": log_utility,
    "raw": raw,
    "sign": raw,
    "centered_sign_rank": centered_rank,
}
SIGN_SHAPINGS = frozenset({"sign", "centered_sign_rank"})


def entropy(weights: NDArray[np.floating]) -> float:
    """-Σ p log p with p = |w|/Σ|w|, in nats: e to this is how many directions effectively make the update."""
    sizes = np.abs(weights).astype(np.float64, copy=False)
    total = float(sizes.sum())
    if total == 0:
        return 0.0
    share = sizes[sizes != 0] / total
    return float(-(share * np.log(share)).sum())


def find_shaping(name: str) -> Callable[[Floats], Floats]:
    """The shaping of a name, or of a path `module:function`. An unknown one raises UsageError."""
    if ":" in name:
        return import_callable(name, "shaping")
    if name not in SHAPINGS:
        raise UsageError(
            f"shaping is {name!r}{nearest(name, SHAPINGS)}; expected one of {', '.join(SHAPINGS)}, or module:name"
        )
    return SHAPINGS[name]


def shape(name: str, fitness: Floats) -> Floats:
    """The weights of a generation. NaN, +inf, or a generation in which every member failed raises ValueError."""
    fitness = np.asarray(fitness, dtype=np.float64)
    check_fitness(fitness)
    return _checked(name, fitness) if ":" in name else find_shaping(name)(fitness)


def real_array(values: Any) -> Floats:
    """Numbers that a user's function returned, in any kind of array. Complex numbers, and what is none, raise TypeError."""
    found = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    if found.dtype.kind == "O":  # such as whole numbers of any size; NumPy itself would make None a NaN
        return np.array([float(value) for value in found.flat]).reshape(found.shape)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{found.dtype} is not a kind of real number")
    return found.astype(np.float64)


def _checked(name: str, fitness: Floats) -> Floats:
    """The weights of a user's shaping. Anything but one finite number for each member raises RunError."""
    function, members = find_shaping(name), len(fitness)
    try:
        result = real_array(function(fitness.copy()))
    except (Exception, SystemExit) as error:
        raise RunError(f"shaping {name!r} failed: {named_line(error)}") from error
    if result.shape != (members,) or not np.isfinite(result).all():
        shown = "numbers that are not finite" if result.shape == (members,) else f"an array of shape {result.shape}"
        raise RunError(f"shaping {name!r} returned {shown}; expected {members} finite weights, one for each member")
    return result


def check_fitness(fitness: Floats) -> None:
    """Refuse what cannot be learned from: NaN, +inf, or a generation in which every member failed (ValueError)."""
    if isfinite(fitness.sum()):
        return
    if np.isnan(fitness).any() or np.isposinf(fitness).any():
        first = int(np.flatnonzero(np.isnan(fitness) | np.isposinf(fitness))[0])
        raise ValueError(f"fitness[{first}] is {fitness[first]}; expected a finite number, or -inf for a failed member")
    if not np.isfinite(fitness).any():
        raise ValueError("every member failed: no fitness to learn from")
