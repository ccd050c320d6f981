"""The hybrids' processes against bare loops: rollouts of a 400-300 actor, and training in several processes at once.

    python benchmarks/hybrids.py [--actors 1] [--updates 400] [--json]

Rollouts: esker's episodes against replaying the same actions in the same environment. Training: a critic and some actors
trained by esker's workers at the same time, against bare torch loops in as many processes at the same time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np

from esker.api import configure
from esker.assemble import describe
from esker.assemble_hybrids import build_task
from esker.engines.pool import LocalPool
from esker.learners.rows import SharedRows
from esker.tasks.hybrid import HybridTask, Workbench
from esker.tasks.requests import CriticWork, Episodes, Training, Trial

BARE = """
import sys, time, torch
sys.path.insert(0, {folder!r})
torch.set_num_threads(1)
from learner import bare
from esker.learners.rows import Layout
from esker.learners.spec import LearnerSpec
run = bare(LearnerSpec(Layout(17, 6), (-1.0,) * 6, (1.0,) * 6), {kind!r})
run(10)
start = time.perf_counter()
run({updates})
print({updates} / (time.perf_counter() - start))
"""


def rollouts(task: HybridTask, episodes: int = 3) -> dict[str, float]:
    """Steps per second of episodes, and of their actions replayed."""
    bench = Workbench(task, None, [0])
    parameters = task.network.initial(np.random.default_rng(0))
    env = task.environment.make()
    rates: dict[str, list[float]] = {"esker": [], "replay": []}
    for seed in range(episodes):
        start = time.perf_counter()
        _, (length,), rows = bench.stage.run(Episodes((seed,), parameters))
        rates["esker"].append(length / (time.perf_counter() - start))
        actions = rows[:, bench.stage.layout.observation : bench.stage.layout.reward]
        env.reset(seed=seed)
        start = time.perf_counter()
        for action in actions:
            env.step(action)
        rates["replay"].append(length / (time.perf_counter() - start))
    medians = {name: float(np.median(values[1:])) for name, values in rates.items()}
    return medians | {"ratio": medians["esker"] / medians["replay"]}


def training(task: HybridTask, actors: int, updates: int) -> dict[str, float]:
    """Critic and actor updates per second, all processes at work at once."""
    rows = SharedRows.create(None, task.spec.layout.width)
    count = 50_000
    rows.first(count)[:] = np.random.default_rng(0).standard_normal((count, task.spec.layout.width))
    pool = LocalPool(task, rows, {"actor": actors, "critic": 1})
    state = Workbench(task, None, [0]).critics.state()
    actor = task.network.initial(np.random.default_rng(0))
    rates: dict[str, list[float]] = {"critic": [], "actor": []}
    for number in (20, updates):  # the first round starts the processes
        begun = {pool.submit(CriticWork(actor, number, 1, count, state), "critic"): "critic"}
        for _ in range(actors):
            trial = Trial("actor", Episodes((), actor), Training(state["critic"], number, 2, count))
            begun[pool.submit(trial)] = "actor"
        start = time.perf_counter()
        while begun:
            for ticket, _ in pool.wait():
                kind = begun.pop(ticket)
                if number == updates:
                    rates[kind].append(number / (time.perf_counter() - start))
    pool.close()
    return {kind: float(np.mean(values)) for kind, values in rates.items()}


def bare_training(actors: int, updates: int) -> dict[str, float]:
    """The same by bare torch loops."""
    folder = str(__import__("pathlib").Path(__file__).parent)
    kinds = ["critic"] + ["actor"] * actors
    commands = [BARE.format(folder=folder, kind=kind, updates=updates) for kind in kinds]
    running = [subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) for text in commands]
    rates = [float(process.communicate()[0]) for process in running]
    return {"critic": rates[0], "actor": float(np.mean(rates[1:]))}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--actors", type=int, default=1)
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    config, environment, _ = configure("HalfCheetah-v5", {}, algo="aes-rl")
    task = build_task(config, environment, describe(environment.make()))
    ours, bare = training(task, options.actors, options.updates), bare_training(options.actors, options.updates)
    result = {
        "rollouts": rollouts(task),
        "training": {kind: {"esker": ours[kind], "bare": bare[kind], "ratio": ours[kind] / bare[kind]} for kind in ours},
    }
    if options.json:
        print(json.dumps(result))
        return
    found = result["rollouts"]
    print(f"rollouts: {found['esker']:,.0f} steps/s, replay {found['replay']:,.0f}; ratio {found['ratio']:.2f}")
    for kind, one in result["training"].items():
        print(f"{kind} updates/s: {one['esker']:,.1f}, bare {one['bare']:,.1f}; ratio {one['ratio']:.2f}")


if __name__ == "__main__":
    main()
