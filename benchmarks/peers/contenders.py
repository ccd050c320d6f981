"""One contender of `make bench-peers`, in its own process: prints what it measured as one line of JSON.

    python benchmarks/peers/contenders.py esker-steps HalfCheetah-v5

Run by the interpreter of the environment where the contender is installed; imports nothing of esker unless it is esker.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

POPULATION = {"HalfCheetah-v5": 80, "CartPole-v1": 1000}
WORKERS = 2
GENERATIONS = {"HalfCheetah-v5": 1, "CartPole-v1": 4}  # that are timed, after one that is not
HIDDEN = 64
SIGMA, LR = 0.05, 1e-9  # nobody learns, so that episodes stay as long for all


def esker_steps(env: str) -> dict[str, float]:
    """esker: whole generations, update and commit to disk included."""
    import esker

    with tempfile.TemporaryDirectory() as folder:
        seen: list[dict[str, Any]] = []
        memory: list[float] = []

        def look(row: dict[str, Any]) -> None:
            seen.append(row)
            memory.append(pss())

        options = {"population": POPULATION[env], "sigma": SIGMA, "lr": LR, "hidden": (HIDDEN, HIDDEN), "workers": WORKERS}
        options |= {"preset": None, "quiet": True, "generations": GENERATIONS[env] + 2, "run_dir": f"{folder}/run"}
        esker.train(env, on_generation=look, **options)
    first, last = seen[1], seen[-1]
    steps, seconds = (last[name] - first[name] for name in ("env_steps", "wall_time"))
    return {"steps": steps, "seconds": seconds, "pss": max(memory)}


def evotorch_steps(env: str, vectorized: bool = False) -> dict[str, float]:
    """EvoTorch: PGPE over GymNE with two actors, or over VecGymNE, which steps its environments in one process."""
    from evotorch.algorithms import PGPE
    from evotorch.neuroevolution import GymNE, VecGymNE

    network = (
        f"Linear(obs_length, {HIDDEN}) >> Tanh() >> Linear({HIDDEN}, {HIDDEN}) >> Tanh() >> Linear({HIDDEN}, act_length)"
    )
    if vectorized:
        problem: Any = VecGymNE(f"gym::{env}", network, observation_normalization=True, num_actors=WORKERS)
    else:
        problem = GymNE(env, network, observation_normalization=True, num_actors=WORKERS)
    searcher = PGPE(problem, popsize=POPULATION[env], center_learning_rate=LR, stdev_learning_rate=0.1, stdev_init=SIGMA)
    searcher.step()
    before, began = problem.status["total_interaction_count"], time.perf_counter()
    for _ in range(GENERATIONS[env]):
        searcher.step()
    seconds = time.perf_counter() - began
    return {"steps": problem.status["total_interaction_count"] - before, "seconds": seconds, "pss": pss()}


def minimal_steps(env: str) -> dict[str, float]:
    """The loop that es-torch and RLlib's examples have: a process each, one environment, torch on one observation."""
    import torch

    with multiprocessing.get_context("spawn").Pool(WORKERS, _open_minimal, (env,)) as pool:
        center = torch.zeros(pool.apply(_dimension))
        steps, began = 0, 0.0
        for generation in range(GENERATIONS[env] + 1):
            if generation == 1:
                steps, began = 0, time.perf_counter()
            noise = torch.randn(POPULATION[env] // 2, center.numel())
            noise = torch.cat([noise, -noise])
            results = pool.map(_episode, [(center + SIGMA * each).numpy() for each in noise], chunksize=1)
            returns = torch.tensor([total for total, _ in results])
            ranks = returns.argsort().argsort() / (len(returns) - 1) - 0.5
            center += LR / (len(noise) * SIGMA) * (ranks @ noise)
            steps += sum(length for _, length in results)
        return {"steps": steps, "seconds": time.perf_counter() - began, "pss": pss()}


def raw_steps(env: str) -> dict[str, float]:
    """The simulator: two processes that step with random actions and do nothing else."""
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        pool.starmap(_step_raw, [(env, 200)] * WORKERS, chunksize=1)
        began = time.perf_counter()
        count = 100_000 if env == "CartPole-v1" else 20_000
        pool.starmap(_step_raw, [(env, count)] * WORKERS, chunksize=1)
        return {"steps": WORKERS * count, "seconds": time.perf_counter() - began, "pss": pss()}


def _step_raw(env_name: str, count: int) -> None:
    import gymnasium as gym

    env = gym.make(env_name, disable_env_checker=True)
    actions = [env.action_space.sample() for _ in range(200)]
    env.reset(seed=0)
    for number in range(count):
        _, _, terminated, truncated, _ = env.step(actions[number % 200])
        if terminated or truncated:
            env.reset()


_minimal: Any = None


def _open_minimal(env_name: str) -> None:
    global _minimal
    import gymnasium as gym
    import torch
    from torch import nn

    torch.set_num_threads(1)
    env = gym.make(env_name, disable_env_checker=True)
    inputs = env.observation_space.shape[0]  # type: ignore[index]
    discrete = isinstance(env.action_space, gym.spaces.Discrete)
    outputs = int(env.action_space.n) if discrete else env.action_space.shape[0]  # type: ignore[attr-defined, index]
    layers = nn.Linear(inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs)
    _minimal = env, nn.Sequential(*layers), discrete


def _dimension() -> int:
    return sum(parameter.numel() for parameter in _minimal[1].parameters())


def _episode(parameters: Any) -> tuple[float, int]:
    import numpy as np
    import torch

    env, network, discrete = _minimal
    torch.nn.utils.vector_to_parameters(torch.from_numpy(parameters), network.parameters())
    observation, _ = env.reset()
    total, length, over = 0.0, 0, False
    with torch.no_grad():
        while not over:
            output = network(torch.from_numpy(observation.astype(np.float32)))
            action = int(output.argmax()) if discrete else output.clamp(-1, 1).numpy()
            observation, reward, terminated, truncated, _ = env.step(action)
            total, length, over = total + float(reward), length + 1, terminated or truncated
    return total, length


def pss() -> float:
    """Megabytes of this process and all below it; what several share is counted once."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    family = {os.getpid()}
    while new := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= new
    total = 0
    for pid in family:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


CONTENDERS = {
    "esker-steps": esker_steps,
    "evotorch-steps": evotorch_steps,
    "evotorch-vec-steps": lambda env: evotorch_steps(env, vectorized=True),
    "minimal-steps": minimal_steps,
    "raw-steps": raw_steps,
}


if __name__ == "__main__":
    print(json.dumps(CONTENDERS[sys.argv[1]](sys.argv[2])))
