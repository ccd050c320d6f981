"""The update of one contender of `make bench-peers` at some (N, d): seconds of one ask and tell, as one line of JSON.

    python benchmarks/peers/updates.py esker 1000 100000

esker's population is made of addresses, and whoever evaluates a member makes it; the others' are matrices of N rows, made
here, and what does not fit is not tried.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

REPETITIONS = 3
SIGMA, LR = 0.05, 0.01


def timed(generation: Callable[[], Any]) -> float:
    """Median seconds of a generation, after one that is not counted."""
    generation()
    seconds = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        generation()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def esker(population: int, dimension: int, noise: Any = "counter") -> float:
    """OpenAI-ES with Adam, by esker.OpenAIES, whose directions are computed when they are needed."""
    import esker as library

    center = np.zeros(dimension, dtype=np.float32)
    strategy = library.OpenAIES(center, population=population, sigma=SIGMA, lr=LR, seed=0, noise=noise)
    fitness = np.random.default_rng(0).standard_normal(population)

    def generation() -> None:
        strategy.ask()
        strategy.tell(fitness)

    return timed(generation)


def esker_table(population: int, dimension: int) -> float:
    """The same with directions from a table that all processes share, as `esker train` has it."""
    return esker(population, dimension, "table")


def evosax(population: int, dimension: int) -> float:
    """OpenAI-ES with Adam, compiled by JAX."""
    import jax
    import jax.numpy as jnp
    import optax
    from evosax.algorithms import Open_ES

    strategy = Open_ES(population, jnp.zeros(dimension), optimizer=optax.adam(LR))
    params = strategy.default_params
    state = strategy.init(jax.random.key(0), jnp.zeros(dimension), params)
    ask, tell = jax.jit(strategy.ask), jax.jit(strategy.tell)
    fitness = jax.random.normal(jax.random.key(1), (population,))

    def generation() -> None:
        nonlocal state
        members, state = ask(jax.random.key(2), state, params)
        state, _ = tell(jax.random.key(3), members, fitness, state, params)
        jax.block_until_ready(state.mean)

    return timed(generation)


def evox(population: int, dimension: int) -> float:
    """OpenAI-ES with Adam, by EvoX, whose step draws, evaluates and updates; evaluation here costs nothing."""
    import torch
    from evox.algorithms import OpenES

    fitness = torch.randn(population)
    strategy = OpenES(population, torch.zeros(dimension), LR, SIGMA, "adam")
    strategy.evaluate = lambda members: fitness
    return timed(strategy.step)


def evotorch(population: int, dimension: int) -> float:
    """PGPE with Adam, by EvoTorch: as much noise and one more vector to update than OpenAI-ES has."""
    import torch
    from evotorch import Problem
    from evotorch.algorithms import PGPE

    fitness = torch.randn(population)
    problem = Problem("max", lambda members: fitness, solution_length=dimension, initial_bounds=(-1, 1), vectorized=True)
    searcher = PGPE(
        problem,
        popsize=population,
        center_learning_rate=LR,
        stdev_learning_rate=0.1,
        stdev_init=SIGMA,
        optimizer="adam",
    )
    return timed(searcher.step)


CONTENDERS = {"esker": esker, "esker-table": esker_table, "evosax": evosax, "evox": evox, "evotorch": evotorch}


if __name__ == "__main__":
    name, population, dimension = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps({"seconds": CONTENDERS[name](population, dimension)}))
