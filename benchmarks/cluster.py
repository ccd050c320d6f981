"""What a cluster costs: the coordinator alone with members that do nothing, and the Ray engine against the local one.

  python benchmarks/cluster.py coordinator          # 10,000 members over 10, 100 and 900 simulated workers
  python benchmarks/cluster.py nodes                # the slope per node: 1, 10, 30, 100 simulated nodes
  python benchmarks/cluster.py update               # the weighted sum of 5,000 directions, which the others leave out
  python benchmarks/cluster.py step                 # one core's time for a step of Humanoid-v5 with its policy
  python benchmarks/cluster.py ratio                # Ray against local, HalfCheetah-v5, 2 workers, alternated, median of 5

The coordinator runs the loop that it runs for real: orders, answers, facts, commit with fsync, copies on other nodes,
journal, optimizer step; only the weighted sum of the noise is left out. Simulated nodes are one actor that answers at
once, so that what is measured is the coordinator's own work. `wall_ms` and `cpu_ms` (its process, all threads) are medians
over generations, `worst_ms` is the slowest generation, `shared_update_ms` the messages of an update that nodes share.
`-o FILE` adds the readings to a JSON file.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from esker.engines.node import NodeReply, Order
from esker.engines.packing import Packed
from esker.engines.ray import RayEngine
from esker.engines.roster import Node

MEMBERS = 10_000
LAYERS = (376, 256, 256, 17)  # Humanoid: 166,673 parameters
WORKERS_PER_NODE = 64
WARM_UP = 3  # generations that open connections and write the first best checkpoint


class NoOpNode:
    """Stands for many nodes: answers every order at once, having fetched the centre as a node would."""

    def __init__(self) -> None:
        self._round = 0

    def feed(self, order: Order, job: list[Any]) -> NodeReply:
        import ray

        if order.round != self._round:
            self._round = order.round
            ray.get(job[0])
        items = order.items
        values = np.sin(items) - (items < 30)  # the centre's episodes are the worst: no best checkpoint after the first
        counted = np.flatnonzero(items % 50 == 49)  # 200 episodes with observation statistics
        sums = np.ones((len(counted), 2, LAYERS[0]))
        return NodeReply(order.round, Packed(items, values, values, np.full(len(items), 10), counted, sums, {}), 0)

    def store(self, epoch: int, files: dict[str, bytes], facts_at: int, facts: bytes) -> int:
        return facts_at + len(facts)

    def partial_sum(self, epoch: int, generation: int, weights: list[Any], start: int, stop: int) -> Any:
        import ray

        ray.get(weights[0])
        return np.zeros(stop - start, dtype=np.float32)

    def finish(self, epoch: int, round: int) -> None: ...


class SimulatedRoster:
    """Nodes that exist only as entries: all of them are one actor."""

    epoch = 0

    def __init__(self, actor: Any, nodes: int, workers: int) -> None:
        self.arrivals: SimpleQueue[Node] = SimpleQueue()
        self.notes: SimpleQueue[str] = SimpleQueue()
        self.refusals: dict[str, str] = {}
        for number in range(nodes):
            share = workers * (number + 1) // nodes - workers * number // nodes
            self.arrivals.put(Node(str(number), str(number), actor, share))

    def close(self) -> None: ...


class NoSum:
    """Noise whose weighted sum costs nothing: the update is measured by itself."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def weighted_sum(self, generation: int, weights: Any) -> Any:
        return np.zeros(self.dimension, dtype=np.float32)


def measure(nodes: int, workers: int, generations: int) -> dict[str, Any]:
    """Wall and CPU time per generation of the training loop, with nodes that take no time."""
    import ray

    from esker.algorithms.es import EvolutionStrategy
    from esker.algorithms.loop import train
    from esker.cluster.replicated import ReplicatedFolder
    from esker.config.options import ESConfig
    from esker.policies.mlp import MLP
    from esker.strategies.openai_es import OpenAIES
    from esker.tasks.episodes import Episodes
    from esker.worlds.environments import Environment

    actor = ray.remote(NoOpNode).options(max_concurrency=16).remote()
    engine = RayEngine(SimulatedRoster(actor, nodes, workers))  # type: ignore[arg-type]
    network = MLP(LAYERS, "tanh", "xavier")
    options: dict[str, Any] = {"population": MEMBERS, "center_episodes": 30, "generations": generations + WARM_UP}
    config = ESConfig(env="none", noise="counter", checkpoint_every=1 << 30, **options)
    task = Episodes(Environment("none"), network, None, 0, center_episodes=30)  # type: ignore[arg-type]
    strategy = OpenAIES(np.zeros(network.dimension, dtype=np.float32), population=MEMBERS, noise=NoSum(network.dimension))
    state = EvolutionStrategy(config, task, strategy, None)
    marks: list[tuple[float, float]] = []

    def seen(row: Any, returns: Any = None) -> None:
        marks.append((time.perf_counter(), time.process_time()))

    with tempfile.TemporaryDirectory() as path:
        ReplicatedFolder.create(Path(path) / "run", config, {})
        folder = ReplicatedFolder(Path(path) / "run")
        folder.replicate_to(engine, 0, "none", print)
        gc.freeze()  # as the coordinator does
        train(folder, state, engine, seen)
    sharing = shared_update(engine, network.dimension) if nodes > 1 else None
    ray.kill(actor)
    walls, cpus = (1e3 * np.diff(np.array(marks[WARM_UP - 1 :]), axis=0)).T
    return {
        "workers": workers,
        "nodes": nodes,
        "dimension": network.dimension,
        "wall_ms": round(float(np.median(walls)), 1),
        "worst_ms": round(float(walls.max()), 1),
        "cpu_ms": round(float(np.median(cpus)), 1),
        "generations_per_second": round(1e3 / float(np.median(walls)), 1),
        "shared_update_ms": sharing,
        "allowed_ms": 50 + 3 * nodes,
    }


def shared_update(engine: RayEngine, dimension: int) -> float:
    """Milliseconds to share an update out over the nodes that it is worth, which add nothing up, and to gather it."""
    from esker.cluster.shared_update import SharedNoise

    noise = SharedNoise(NoSum(dimension), engine)  # type: ignore[arg-type]
    times = []
    for generation in range(10):
        start = time.perf_counter()
        noise.weighted_sum(generation, np.ones(MEMBERS // 2))
        times.append(1e3 * (time.perf_counter() - start))
    return round(statistics.median(times), 1)


def update(repetitions: int) -> dict[str, Any]:
    """Seconds for the weighted sum over the directions of a generation, on one thread and on all."""
    import torch

    from esker.noise.table import NoiseTable, TableNoise
    from esker.policies.mlp import MLP

    noise = TableNoise(NoiseTable.create(0, 50_000_000), 0, MLP(LAYERS, "tanh", "xavier").dimension)
    weights = np.random.default_rng(0).standard_normal(MEMBERS // 2)
    found: dict[str, Any] = {"directions": MEMBERS // 2, "dimension": noise.dimension}
    for threads in (1, os.cpu_count() or 1):
        torch.set_num_threads(threads)
        seconds = []
        for repetition in range(repetitions + 1):
            start = time.perf_counter()
            noise.weighted_sum(repetition, weights)
            seconds.append(time.perf_counter() - start)
        found[f"threads_{threads}_ms"] = [round(1e3 * value, 1) for value in sorted(seconds[1:])]
    return found


def step(repetitions: int) -> list[dict[str, Any]]:
    """Milliseconds per step on one core, all told: in an untrained policy's short episodes, and in ones that never end."""
    from esker.bench.prepared import prepared
    from esker.engines.engine import InlineEngine

    found = []
    for kwargs, members in (({}, 200), ({"terminate_when_unhealthy": False}, 16)):
        options = {"population": members, "hidden": LAYERS[1:3], "env_kwargs": kwargs, "center_episodes": 1}
        state, _ = prepared("Humanoid-v5", options)
        engine, costs = InlineEngine(state.task, state.table), []
        for _ in range(repetitions + 1):
            plan, start = state.plan(), time.perf_counter()
            engine.evaluate(state.job(), plan)
            steps = sum(result.length for result in plan.results.values())
            costs.append(round(1e3 * (time.perf_counter() - start) / steps, 3))
        found.append({"env_kwargs": kwargs, "mean_length": round(steps / len(plan.results)), "ms_per_step": costs[1:]})
    return found


def ratio(repetitions: int, population: int, env: str) -> dict[str, Any]:
    """Steps per second of the Ray engine over the local engine's, whole generations, alternated."""
    import contextlib

    from esker.algorithms.algorithm import Site
    from esker.bench.prepared import prepared
    from esker.engines.demand import Demand
    from esker.engines.open import local_engine, ray_engine

    state, about = prepared(env, {"population": population, "engine": "ray"})
    task, table, config = state.task, state.table, state.config
    site = Site(Path(), about["fingerprint"], print)
    seeded = (config.seed, config.table_size)
    rates: dict[str, list[float]] = {"local": [], "ray": []}
    spent: dict[str, list[float]] = {"local": [], "ray": []}
    with (
        contextlib.closing(local_engine(task, 2, table)) as local,
        contextlib.closing(ray_engine(task, Demand(2), site, seeded)) as clustered,
    ):
        for repetition in range(repetitions + 1):
            turns = [("local", local), ("ray", clustered)]
            for name, engine in turns if repetition % 2 else reversed(turns):
                plan, start = state.plan(), time.perf_counter()
                engine.evaluate(state.job(), plan)  # type: ignore[attr-defined]
                seconds = time.perf_counter() - start
                if repetition:  # the first ones start processes
                    rates[name].append(sum(result.length for result in plan.results.values()) / seconds)
                    spent[name].append(round(seconds, 2))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {
        "env": env,
        "members": population,
        "steps_per_second": {name: [round(value) for value in values] for name, values in rates.items()},
        "seconds": spent,
        "pairs": [round(ray / alone, 3) for ray, alone in zip(rates["ray"], rates["local"], strict=True)],
        "ratio_of_medians": round(medians["ray"] / medians["local"], 3),
    }


def store(path: Path, what: str, readings: list[dict[str, Any]]) -> None:
    """Add readings to a file: every one of them stays."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    when: dict[str, Any] = {"date": time.strftime("%Y-%m-%d %H:%M"), "cores": os.cpu_count(), "machine": platform.machine()}
    when["load"] = f"load average {os.getloadavg()[0]:.1f} at the end"
    kept.setdefault(what, []).append(when | {"readings": readings})
    path.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("coordinator", "nodes", "update", "step", "ratio"))
    parser.add_argument("--generations", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--population", type=int, default=200)
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("-o", "--output", type=Path, help="a JSON file to which the readings are added")
    arguments = parser.parse_args()
    import logging

    import ray

    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.CRITICAL,
        object_store_memory=200_000_000,
    )
    readings: list[dict[str, Any]] = []

    def say(reading: dict[str, Any]) -> None:
        readings.append(reading)
        print(json.dumps(reading), flush=True)

    if arguments.what == "ratio":
        say(ratio(arguments.repetitions, arguments.population, arguments.env))
    elif arguments.what == "update":
        say(update(arguments.repetitions))
    elif arguments.what == "step":
        for reading in step(arguments.repetitions):
            say(reading)
    elif arguments.what == "coordinator":
        for workers in (10, 100, 900):
            say(measure(-(-workers // WORKERS_PER_NODE), workers, arguments.generations))
    else:
        for nodes in (1, 10, 30, 100):
            say(measure(nodes, nodes * WORKERS_PER_NODE, arguments.generations))
    if arguments.output is not None:
        store(arguments.output, arguments.what, readings)
    ray.shutdown()


if __name__ == "__main__":
    main()
