"""ACEM-RL: the cross-entropy method without generations; the last results serve as one."""

from __future__ import annotations

from esker.algorithms.asynchronous import asynchronous
from esker.config.hybrids import ACEMRLConfig
from esker.noise.directions import Vector
from esker.strategies.async_cem import AsyncCEM


def strategy(config: ACEMRLConfig, mean: Vector) -> AsyncCEM:
    """The strategy of a configuration."""
    return AsyncCEM(
        mean,
        population=config.population,
        var=config.var_init,
        damp_init=config.damp_init,
        damp_limit=config.damp_limit,
        damp_tau=config.damp_tau,
        divide_variance=config.divide_variance,
        seed=config.seed,
    )


ACEM_RL = asynchronous("acem-rl", ACEMRLConfig, strategy)
