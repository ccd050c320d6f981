"""How fast `esker.Evolution` is, as ratios within one run.

    python benchmarks/evolution.py                    # scaling over workers, overhead per member
    pip install evotorch==0.6.1; python benchmarks/evolution.py --evotorch     # and batched Rastrigin beside EvoTorch

Prints a table and, as its last line, the same numbers as JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import esker

MEMBERS, REWARD_SECONDS = 100, 1e-3
DIMENSION, POPULATION = 1000, 10_000


def spin(model: nn.Module) -> float:
    """A reward that computes for a millisecond."""
    end = time.perf_counter() + REWARD_SECONDS
    while time.perf_counter() < end:
        pass
    return 1.0


def nothing(model: nn.Module) -> float:
    """An empty reward."""
    return 1.0


def seconds_per_iteration(reward: Callable[[nn.Module], float], workers: int, iterations: int = 30) -> float:
    """The median of an iteration, start-up left out."""
    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 13))  # 9,997 parameters
    evolution = esker.Evolution(model, reward, population=MEMBERS, workers=workers, quiet=True)
    evolution.run(iterations, report_every=None)
    times = [row["wall_time"] for row in evolution.history]
    return statistics.median(after - before for before, after in itertools.pairwise(times[4:]))


def scaling() -> dict[str, float]:
    """100 members of a 10,000-parameter module with a 1 ms reward that computes: two processes against one."""
    inline, one, two = (seconds_per_iteration(spin, workers) for workers in (0, 1, 2))
    rewards = (MEMBERS + 1) * REWARD_SECONDS  # what an iteration would take if nothing but rewards took time
    return {
        "iteration_inline_ms": inline * 1e3,
        "iteration_one_worker_ms": one * 1e3,
        "iteration_two_workers_ms": two * 1e3,
        "share_of_twofold_scaling": one / two / 2,  # of the ideal, twice as fast as one worker
        "share_of_rewards": rewards / 2 / two,  # of an ideal without any overhead
    }


def overhead() -> dict[str, float]:
    """What a member costs when its reward is empty."""
    return {
        f"overhead_per_member_{name}_ms": seconds_per_iteration(nothing, workers) / (MEMBERS + 1) * 1e3
        for name, workers in (("inline", 0), ("two_workers", 2))
    }


def rastrigin(x: torch.Tensor) -> torch.Tensor:
    return 10 * x.shape[-1] + (x**2 - 10 * torch.cos(2 * torch.pi * x)).sum(-1)


def per_generation(step: Callable[[], Any], generations: int) -> float:
    step()
    times = []
    for _ in range(generations):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def batched(with_evotorch: bool, device: str, generations: int = 10) -> dict[str, float]:
    """Rastrigin, d = 1,000, N = 10,000: a generation of esker, and of EvoTorch's PGPE and SNES."""
    x = torch.full((DIMENSION,), 3.0)
    evolution = esker.Evolution(
        x, reward_batch=lambda x: -rastrigin(x), population=POPULATION, sigma=0.5, lr=0.1, device=device, quiet=True
    )
    result = {"esker_ms": per_generation(lambda: evolution.run(1, report_every=None), generations) * 1e3}
    if not with_evotorch:
        return result
    from evotorch import Problem
    from evotorch.algorithms import PGPE, SNES
    from evotorch.decorators import vectorized

    for name, make in (
        ("PGPE", lambda p: PGPE(p, popsize=POPULATION, center_learning_rate=0.1, stdev_learning_rate=0.1, stdev_init=0.5)),
        ("SNES", lambda p: SNES(p, popsize=POPULATION, stdev_init=0.5)),
    ):
        problem = Problem(
            "min", vectorized(rastrigin), solution_length=DIMENSION, initial_bounds=(-5.12, 5.12), device=device
        )
        searcher = make(problem)
        result[f"evotorch_{name}_ms"] = per_generation(searcher.step, generations) * 1e3
        result[f"ratio_to_{name}"] = result[f"evotorch_{name}_ms"] / result["esker_ms"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evotorch", action="store_true", help="compare with EvoTorch, which must be installed")
    parser.add_argument("--device", default="cpu", help="device of the batched measurement")
    parser.add_argument("--only", choices=("scaling", "overhead", "batched"), help="one measurement alone")
    options = parser.parse_args()
    measured: dict[str, float] = {"cores": os.cpu_count() or 1, "torch_threads": torch.get_num_threads()}
    parts = {"scaling": scaling, "overhead": overhead, "batched": lambda: batched(options.evotorch, options.device)}
    for name, measure in parts.items():
        if options.only in (None, name):
            measured.update(measure())
    for name, value in measured.items():
        print(f"{name:32} {value:10.3f}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
