"""Black-box functions minimised by one system: esker, EvoTorch or evosax. A part of benchmarks/functions.py.

    python benchmarks/function_systems.py SYSTEM

reads cases as lines of JSON and answers each with a line of JSON, so that several systems can take turns on one machine.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

START = {"sphere": 1.0, "ellipsoid": 1.0, "rastrigin": 2.5, "rosenbrock": -1.0}
STDEV_LR = 0.1


class Loop(NamedTuple):
    """A strategy on a function: one generation, and the best value of the generation before."""

    generation: Callable[[], None]
    best: Callable[[], float]
    wait: Callable[[], None]


def function(name: str, xp: Any, d: int) -> Callable[[Any], Any]:
    """A function of the rows of an array, in torch or JAX."""
    if name == "sphere":
        return lambda x: (x**2).sum(-1)
    if name == "ellipsoid":
        curvature = xp.asarray([10 ** (6 * i / (d - 1)) for i in range(d)], dtype=xp.float32)
        return lambda x: (curvature * x**2).sum(-1)
    if name == "rastrigin":
        return lambda x: (10 + x**2 - 10 * xp.cos(2 * math.pi * x)).sum(-1)
    return lambda x: (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(-1)


def sigma(d: int) -> float:
    """The first standard deviation: half a unit, less where many parameters would add up to a long step."""
    return min(0.5, 5 / math.sqrt(d))


def speeds(d: int) -> tuple[float, float]:
    """ClipUp's lr and maximum speed, as its authors recommend: a 15th of the first standard deviation's norm."""
    most = sigma(d) * math.sqrt(d) / 15
    return most / 2, most


def esker_loop(case: dict[str, Any]) -> Loop:
    import torch

    import esker
    from esker.noise.table import TableNoise

    d, name = case["dimension"], case["strategy"]
    f = function(case["function"], torch, d)
    lr, most = speeds(d)
    make = {"pgpe": esker.PGPE, "snes": esker.SNES, "sep-cma": esker.SepCMA, "cma": esker.CMA}[name]
    options = {"pgpe": {"lr": lr, "max_speed": most, "stdev_lr": STDEV_LR}, "cma": {"active": True}}.get(name, {})
    start, noise = torch.full((d,), START[case["function"]]), TableNoise(_table(), case["seed"], d)
    es = make(start, population=case["population"], sigma=sigma(d), noise=noise, **options)
    values = torch.zeros(1)

    def generation() -> None:
        nonlocal values
        values = f(es.ask().parameters())
        es.tell(-values)

    return Loop(generation, lambda: float(values.min()), lambda: None)


def evotorch_loop(case: dict[str, Any]) -> Loop:
    import logging

    import torch
    from evotorch import Problem
    from evotorch.algorithms import CMAES, PGPE, SNES
    from evotorch.decorators import vectorized

    logging.disable(logging.WARNING)
    d, name = case["dimension"], case["strategy"]
    f = vectorized(function(case["function"], torch, d))
    lr, most = speeds(d)
    problem = Problem("min", f, solution_length=d, bounds=None, initial_bounds=(-1, 1), seed=case["seed"])
    center = torch.full((d,), START[case["function"]])
    common = {"popsize": case["population"], "stdev_init": sigma(d), "center_init": center}
    if name == "pgpe":
        common |= {"center_learning_rate": lr, "stdev_learning_rate": STDEV_LR, "optimizer_config": {"max_speed": most}}
        searcher = PGPE(problem, **common)
    elif name == "snes":
        searcher = SNES(problem, **common)
    else:
        searcher = CMAES(problem, separable=name == "sep-cma", **common)
    return Loop(searcher.step, lambda: float(searcher.population.evals.min()), lambda: None)


@lru_cache(maxsize=2)
def _compiled(name: str, strategy: str, d: int, population: int) -> tuple[Any, Any]:
    """A function and a strategy of evosax, which JAX compiles once for all seeds."""
    import evosax.algorithms as algorithms
    import jax
    import jax.numpy as jnp
    from evosax.core.optimizer import clipup

    make = {"pgpe": "PGPE", "snes": "SNES", "sep-cma": "Sep_CMA_ES", "cma": "CMA_ES"}[strategy]
    lr, most = speeds(d)
    options = {"optimizer": clipup(learning_rate=lr, max_velocity=most)} if strategy == "pgpe" else {}
    es = getattr(algorithms, make)(population_size=population, solution=jnp.zeros(d), **options)
    return jax.jit(function(name, jnp, d)), es


def evosax_loop(case: dict[str, Any]) -> Loop:
    import jax
    import jax.numpy as jnp

    d = case["dimension"]
    f, es = _compiled(case["function"], case["strategy"], d, case["population"])
    params = es.default_params.replace(std_init=sigma(d))
    key = jax.random.key(case["seed"])
    state = es.init(key, jnp.full(d, START[case["function"]]), params)
    values = jnp.zeros(1)

    def generation() -> None:
        nonlocal key, state, values
        key, first, second = jax.random.split(key, 3)
        members, state = es.ask(first, state, params)
        values = f(members)
        state, _ = es.tell(second, members, values, state, params)

    return Loop(generation, lambda: float(values.min()), lambda: jax.block_until_ready(state.mean))


LOOPS = {"esker": esker_loop, "evotorch": evotorch_loop, "evosax": evosax_loop}


def seconds_per_generation(loop: Loop, seconds: float) -> float:
    """Processor seconds, which other processes on the core do not add to; the median over slices of several generations."""
    for _ in range(3):
        loop.generation()
    loop.wait()
    begin = time.process_time()
    loop.generation()
    loop.wait()
    batch = max(1, int(seconds / 5 / (time.process_time() - begin)))
    slices = []
    for _ in range(5):
        begin = time.process_time()
        for _ in range(batch):
            loop.generation()
        loop.wait()
        slices.append((time.process_time() - begin) / batch)
    return statistics.median(slices)


def evaluations_to(loop: Loop, case: dict[str, Any], first: float) -> dict[str, Any]:
    """Evaluations until the best member is below each share of the start's value; None where a limit came first."""
    reached: dict[str, int | None] = {str(share): None for share in case["shares"]}
    end, spent, best = time.process_time() + case["seconds"], 0, math.inf
    while spent < case["evaluations"] and time.process_time() < end and None in reached.values():
        loop.generation()
        spent += case["population"]
        best = min(best, loop.best())
        for share in case["shares"]:
            if reached[str(share)] is None and best <= share * first:
                reached[str(share)] = spent
    return {"reached": reached, "spent": spent, "best": best / first}


@lru_cache(maxsize=1)
def _loop(system: str, case: str) -> Loop:
    """A loop that goes on from round to round, so that nothing is built or compiled twice."""
    return LOOPS[system](json.loads(case))


@lru_cache(maxsize=1)
def _table() -> Any:
    from esker.noise.table import DEFAULT_TABLE_SIZE, NoiseTable

    return NoiseTable.create(0, DEFAULT_TABLE_SIZE)


def answer(system: str, case: dict[str, Any]) -> dict[str, Any]:
    """What a case asks for: the time of a generation, or evaluations to targets."""
    if case["measure"] == "time":
        return {"seconds": seconds_per_generation(_loop(system, json.dumps(case)), case["seconds"])}
    loop = LOOPS[system](case)
    import numpy as np

    start = np.full((1, case["dimension"]), START[case["function"]])
    return evaluations_to(loop, case, float(function(case["function"], np, case["dimension"])(start)[0]))


def main() -> None:
    """Answer cases until the input ends, on one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for line in sys.stdin:
        print(json.dumps(answer(sys.argv[1], json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
