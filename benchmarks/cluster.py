"""What a cluster costs: the coordinator alone with members that do nothing, and the Ray engine against the local one.

  python benchmarks/cluster.py coordinator          # 10,000 members over 10, 100 and 900 simulated workers
  python benchmarks/cluster.py nodes                # the slope per node: 1, 10, 30, 100 simulated nodes
  python benchmarks/cluster.py ratio                # Ray against local, HalfCheetah-v5, 2 workers, alternated, median of 5

Simulated nodes answer at once, so that all that is measured is the coordinator's own work. `cpu` is the CPU time of the
coordinator's process, all threads; `facts` and `update` are what the loop does with the results.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from queue import SimpleQueue
from typing import Any

import numpy as np

from esker.engines.node import Answer, Order
from esker.engines.packing import pack
from esker.engines.plan import Plan
from esker.engines.ray import RayEngine
from esker.engines.roster import Node
from esker.tasks.task import Job, Result

MEMBERS = 10_000
DIMENSION = 166_000
WORKERS_PER_NODE = 64


class NoOpNode:
    """Stands for many nodes: answers every order at once, having fetched the centre as a node would."""

    def __init__(self) -> None:
        self._round = 0

    def feed(self, order: Order, job: list[Any]) -> Answer:
        import ray

        if order.round != self._round:
            self._round = order.round
            ray.get(job[0])
        return Answer(order.round, pack([Result(int(item), float(item), float(item), 10) for item in order.items]), 0)

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


def measure(nodes: int, workers: int, generations: int) -> dict[str, Any]:
    """Wall and CPU seconds per generation of the coordinator, with nodes that take no time."""
    import ray

    from esker.algorithms.es import EvolutionStrategy
    from esker.config import ESConfig
    from esker.policies.mlp import MLP
    from esker.tasks.environments import Environment
    from esker.tasks.episodes import Episodes

    actor = ray.remote(NoOpNode).options(max_concurrency=16).remote()
    engine = RayEngine(SimulatedRoster(actor, nodes, workers))  # type: ignore[arg-type]
    network = MLP((376, 256, 256, 17), "tanh", "xavier")  # Humanoid, d = 166,000 about
    config = ESConfig(env="none", population=MEMBERS, center_episodes=30, normalize_observations=False, noise="counter")
    task = Episodes(Environment("none"), network, None, 0, center_episodes=30, normalize=False)  # type: ignore[arg-type]
    state = EvolutionStrategy(config, task, np.zeros(network.dimension, dtype=np.float32), None)
    walls, cpus, facts = [], [], []
    for generation in range(generations + 2):
        plan = Plan(MEMBERS, center=30, unit=2)
        job = Job(generation, np.zeros(network.dimension, dtype=np.float32), 0.02)
        start, cpu = time.perf_counter(), time.process_time()
        engine.evaluate(job, plan)
        middle = time.perf_counter()
        if generation >= 2:  # the first ones open connections
            walls.append(middle - start)
            cpus.append(time.process_time() - cpu)
            state.facts(plan, 1.0)
            facts.append(time.perf_counter() - middle)
    ray.kill(actor)
    return {
        "workers": workers,
        "nodes": nodes,
        "dimension": network.dimension,
        "wall_ms": round(1e3 * statistics.median(walls), 1),
        "cpu_ms": round(1e3 * statistics.median(cpus), 1),
        "facts_ms": round(1e3 * statistics.median(facts), 1),
        "generations_per_second": round(1 / (statistics.median(walls) + statistics.median(facts)), 1),
        "allowed_ms": 50 + 3 * nodes,
    }


def ratio(repetitions: int, population: int, env: str) -> dict[str, Any]:
    """Steps per second of the Ray engine over the local engine's, whole generations, alternated."""
    import contextlib

    import esker.api
    from esker.assemble import build_state, build_task, describe, open_engine, ray_engine
    from esker.tasks.environments import resolve

    environment, _ = resolve(env)
    config = esker.api.configure(env, {"population": population, "workers": 2, "engine": "ray"}, preset=None)[0]
    about = describe(environment.make())
    task = build_task(config, environment, about)
    state, table = build_state(config, task)
    rates: dict[str, list[float]] = {"local": [], "ray": []}
    with (
        open_engine(task, 2, table) as local,
        contextlib.closing(ray_engine(config, task, about["fingerprint"], print)) as clustered,
    ):
        for repetition in range(repetitions + 1):
            for name, engine in (("local", local), ("ray", clustered)):
                plan, start = state.plan(), time.perf_counter()
                engine.evaluate(state.job(), plan)  # type: ignore[attr-defined]
                seconds = time.perf_counter() - start
                if repetition:  # the first ones start processes
                    rates[name].append(sum(result.length for result in plan.results.values()) / seconds)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {name: round(value) for name, value in medians.items()} | {"ratio": round(medians["ray"] / medians["local"], 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("coordinator", "nodes", "ratio"))
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--population", type=int, default=200)
    parser.add_argument("--env", default="HalfCheetah-v5")
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
    if arguments.what == "ratio":
        print(json.dumps(ratio(arguments.repetitions, arguments.population, arguments.env)))
    elif arguments.what == "coordinator":
        for workers in (10, 100, 900):
            print(json.dumps(measure(-(-workers // WORKERS_PER_NODE), workers, arguments.generations)), flush=True)
    else:
        for nodes in (1, 10, 30, 100):
            print(json.dumps(measure(nodes, nodes * WORKERS_PER_NODE, arguments.generations)), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
