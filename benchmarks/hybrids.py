"""The hybrids' processes against bare loops: rollouts of a 400-300 actor, and training in several processes at once.

    python benchmarks/hybrids.py [--actors 1] [--updates 300] [--json]

Rollouts: esker's episodes against replaying the same seeds and actions in the barest loop there is, in turns; a single
episode (an individual), five of one actor (the mean), and one request of each, which is what AES-RL simulates. Training:
a critic and some actors trained by esker's workers at the same time, against bare torch loops in as many processes at
the same time, in turns. The coordinator's CPU time meanwhile shows whether anybody polls. Medians over the turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np

from esker.algorithms.hybrid_setup import build_task
from esker.engines.pool import LocalPool
from esker.learners.rows import SharedRows
from esker.runs.about import describe
from esker.runs.request import configure
from esker.system.blas import one_blas_thread
from esker.tasks.hybrid import HybridTask, HybridWorker
from esker.tasks.requests import CriticWork, Rollout, Training, Trial
from esker.worlds.environments import silence

ENV = "HalfCheetah-v5"
TURNS = 5
ORIGINAL = {"critic": 37.0, "actor": 57.0, "steps": 344.0}  # AES-RL's repository on 2 cores, per second, one actor
BARE = """
import sys, time, torch
sys.path.insert(0, {folder!r})
torch.set_num_threads(1)
from learner import bare
from esker.learners.rows import TransitionLayout
from esker.learners.spec import LearnerSpec
run = bare(LearnerSpec(TransitionLayout(17, 6), (-1.0,) * 6, (1.0,) * 6), {kind!r})
run(10)
print("ready", flush=True)
while sys.stdin.readline():
    start = time.perf_counter()
    run({updates})
    print({updates} / (time.perf_counter() - start), flush=True)
"""


def rollouts(task: HybridTask) -> dict[str, dict[str, float]]:
    """Steps per second of requests of one and of five episodes, and of their actions replayed."""
    stage = HybridWorker(task, None, [0]).player
    parameters = task.network.initial(np.random.default_rng(0))
    with silence():
        env = gym.make(ENV, disable_env_checker=True)
    seconds: dict[str, list[tuple[float, float]]] = {"an individual": [], "the mean": [], "as AES-RL mixes them": []}
    steps = 0
    for turn in range(TURNS + 1):  # the first one warms up
        both = []
        for many in (1, 5):
            seeds = tuple(range(10 * turn, 10 * turn + many))
            start = time.perf_counter()
            _, lengths, rows = stage.run(Rollout(seeds, parameters))
            ours = time.perf_counter() - start
            actions = iter(list(rows[:, stage.layout.observation : stage.layout.reward]))
            start = time.perf_counter()
            for seed, length in zip(seeds, lengths, strict=True):
                env.reset(seed=seed)
                for _ in range(length):
                    env.step(next(actions))
            both.append((ours, time.perf_counter() - start))
            steps = lengths[0]
        if turn:
            whole = tuple(sum(part) for part in zip(*both, strict=True))
            for name, pair in zip(seconds, (*both, whole), strict=True):
                seconds[name].append(pair)
    found = {}
    for (name, pairs), many in zip(seconds.items(), (1, 5, 6), strict=True):
        ours, raw = (many * steps / statistics.median(column) for column in zip(*pairs, strict=True))
        found[name] = {"esker": ours, "replay": raw, "ratio": statistics.median(b / a for a, b in pairs)}
    return found


class Ours:
    """A critic and some actors in esker's worker processes."""

    def __init__(self, task: HybridTask, actors: int, updates: int) -> None:
        self.updates, self.actors, self.count = updates, actors, 50_000
        rows = SharedRows.create(None, task.spec.layout.width)
        rows.first(self.count)[:] = np.random.default_rng(0).standard_normal((self.count, task.spec.layout.width))
        self.pool = LocalPool(task, rows, {"actor": actors, "critic": 1})
        self.state = HybridWorker(task, None, [0]).critics.state()
        self.actor = task.network.initial(np.random.default_rng(0))
        self.run(10)

    def run(self, updates: int | None = None) -> dict[str, float]:
        """Updates per second of each kind, all processes at work at once; and this process's share of a core."""
        number, rates = updates or self.updates, {"critic": [], "actor": []}
        start, cpu = time.perf_counter(), time.process_time()
        begun = {self.pool.submit(CriticWork(self.actor, number, 1, self.count, self.state), "critic"): "critic"}
        for _ in range(self.actors):
            trial = Trial("actor", Rollout((), self.actor), Training(self.state["critic"], number, 2, self.count))
            begun[self.pool.submit(trial)] = "actor"
        while begun:
            for ticket, _ in self.pool.wait():
                rates[begun.pop(ticket)].append(number / (time.perf_counter() - start))
        share = (time.process_time() - cpu) / (time.perf_counter() - start)
        return {kind: statistics.mean(values) for kind, values in rates.items()} | {"coordinator": share}


class Bare:
    """The same by bare torch loops."""

    def __init__(self, actors: int, updates: int) -> None:
        folder = str(Path(__file__).parent)
        texts = [BARE.format(folder=folder, kind=kind, updates=updates) for kind in ["critic"] + ["actor"] * actors]
        pipe = subprocess.PIPE
        self.running = [subprocess.Popen([sys.executable, "-c", t], stdin=pipe, stdout=pipe, text=True) for t in texts]
        for process in self.running:
            process.stdout.readline()

    def run(self) -> dict[str, float]:
        """Updates per second of each kind, all processes at work at once."""
        for process in self.running:
            process.stdin.write("go\n")
            process.stdin.flush()
        critic, *actors = (float(process.stdout.readline()) for process in self.running)
        return {"critic": critic, "actor": statistics.mean(actors)}

    def close(self) -> None:
        """End the processes."""
        for process in self.running:
            process.stdin.close()
            process.wait()


def training(task: HybridTask, actors: int, updates: int) -> dict[str, dict[str, float]]:
    """Both, in turns."""
    ours, bare = Ours(task, actors, updates), Bare(actors, updates)
    turns = [(ours.run(), bare.run()) for _ in range(TURNS)]
    ours.pool.close()
    bare.close()
    found = {}
    for kind in ("critic", "actor"):
        rates = [(one[kind], other[kind]) for one, other in turns]
        mine, theirs = (statistics.median(column) for column in zip(*rates, strict=True))
        found[kind] = {"esker": mine, "bare": theirs, "ratio": statistics.median(a / b for a, b in rates)}
    found["coordinator"] = {"share of a core": statistics.median(one["coordinator"] for one, _ in turns)}
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--actors", type=int, default=1)
    parser.add_argument("--updates", type=int, default=300, help="of each process, in each turn")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asked = configure(ENV, {}, algo="aes-rl")
    config, environment = asked.config, asked.environment
    with silence():
        task = build_task(config, environment, describe(environment.make()))
    with one_blas_thread():
        played = rollouts(task)
    trained = training(task, options.actors, options.updates)
    original = {kind: trained[kind]["esker"] / ORIGINAL[kind] for kind in ("critic", "actor")}
    result = {"rollouts": played, "training": trained, "to the original's rates": original}
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for name, one in played.items():
        print(f"rollouts, {name}: {one['esker']:,.0f} steps/s, replay {one['replay']:,.0f}; ratio {one['ratio']:.2f}")
    for kind in ("critic", "actor"):
        one = trained[kind]
        print(f"{kind} updates/s: {one['esker']:,.1f}, bare {one['bare']:,.1f}; ratio {one['ratio']:.2f}")
        print(f"  {original[kind]:.1f} times the original's {ORIGINAL[kind]:g}")
    print(f"coordinator: {trained['coordinator']['share of a core']:.4f} of a core while they train")


if __name__ == "__main__":
    main()
