"""(1+1)-ES with gradients: an individual that beats the mean takes its place."""

from __future__ import annotations

from esker.algorithms.asynchronous import asynchronous
from esker.config.hybrids import OnePlusOneConfig
from esker.noise.directions import Vector
from esker.strategies.one_plus_one import OnePlusOne


def strategy(config: OnePlusOneConfig, mean: Vector) -> OnePlusOne:
    """The strategy of a configuration."""
    return OnePlusOne(
        mean,
        var=config.var_init,
        success_rate=config.success_rate,
        tau=config.success_tau,
        var_floor=config.var_floor,
        seed=config.seed,
    )


ONE_PLUS_ONE = asynchronous("one-plus-one", OnePlusOneConfig, strategy)
