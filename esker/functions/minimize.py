"""Minimise a black-box function: an ask/tell loop around any strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from esker.errors import named_line
from esker.noise.shaping import real_array
from esker.strategies.registry import find_strategy
from esker.strategies.restarts import RestartKind, Restarts
from esker.strategies.strategy import Strategy

Function = Callable[[torch.Tensor], Any]


@dataclass(frozen=True)
class Minimum:
    """What a minimisation found."""

    x: torch.Tensor  # the best member evaluated
    value: float
    evaluations: int
    reason: str  # why it ended
    strategy: Strategy  # as it ended: `strategy.center`, `strategy.state_dict()`


def minimize(
    function: Function,
    center: ArrayLike | torch.Tensor,
    strategy: str = "cma",
    *,
    evaluations: int = 100_000,
    target: float | None = None,
    batched: bool = True,
    restarts: int = 0,
    restart_kind: RestartKind = "ipop",
    **options: Any,
) -> Minimum:
    """Minimise `function` from `center` with a strategy by name: cma, sep-cma, snes, pgpe, openai-es, or `module:Class`.

    A batched function takes (n, d) rows and returns n values; with `batched=False` it takes one vector and returns one. It
    ends with the first value at or below `target`, after `evaluations`, or when a strategy of the CMA kind has stopped and
    no restart is left. `options` are the strategy's own: population, sigma, seed, noise. Infinite values count as the
    worst; NaN and bad options raise ValueError.
    """
    make: Any = partial(find_strategy(strategy), center=center, **options)
    es: Any = Restarts(make, kind=restart_kind, restarts=restarts, seed=options.get("seed", 0)) if restarts else make()
    best, value, spent = es.center.clone(), inf, 0
    while True:
        rows = es.ask().parameters()
        values = _values(function, rows, batched)
        spent += len(values)
        if values.min() < value:
            first = int(values.argmin())
            best, value = rows[first].clone(), float(values[first])
        if target is not None and value <= target:
            return Minimum(best, value, spent, f"reached {target:g}", es)
        es.tell(-values)
        if (stopped := getattr(es, "stopped", None)) is not None:
            return Minimum(best, value, spent, stopped, es)
        if spent + es.population > evaluations:
            return Minimum(best, value, spent, f"{evaluations:,} evaluations", es)


def _values(function: Function, rows: torch.Tensor, batched: bool) -> NDArray[np.float64]:
    found = function(rows) if batched else [_value(function(row)) for row in rows]
    try:
        values = real_array(found)
    except Exception as error:  # a user's object raises what it likes
        raise ValueError(
            f"the function returned a {type(found).__name__}; expected {len(rows)} numbers ({named_line(error)})"
        ) from error
    if values.shape != (len(rows),):
        raise ValueError(
            f"the function returned shape {values.shape} for {len(rows)} rows; expected one value for each "
            "(or batched=False, for a function of one vector)"
        )
    if np.isnan(values).any():
        raise ValueError(
            f"the function returned NaN for row {int(np.isnan(values).argmax())}; expected a number, or infinity"
        )
    return values


def _value(found: Any) -> float:
    """What a function of one vector returned, as a number. Anything else raises ValueError."""
    try:
        return float(real_array(found).item())
    except Exception as error:  # a user's object raises what it likes
        kind = type(found).__name__
        raise ValueError(f"the function returned a {kind}; expected one number ({named_line(error)})") from error
