"""Measure worlds on the CPU with policies on a device: how much of the cores' bare stepping rate is left.

    python benchmarks/served.py --env ALE/Pong-v5 --set network=nature-cnn --out pong.json
    python benchmarks/served.py --env HalfCheetah-v5 --cap 1000 --out cheetah.json

First every core steps with random actions, as its workers would step; then generations are evaluated, twice: results must
be equal bit for bit. `--device cpu` runs everything without a GPU.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import numpy as np

from esker.algorithms import es
from esker.algorithms.algorithm import Site
from esker.config.device import device_name
from esker.runs.about import describe
from esker.runs.request import Request, configure
from esker.system.cores import available_cores
from esker.worlds.vectorizers import exact_vectorizer, open_worlds
from esker.worlds.worlds import Watch


def main() -> None:
    """Measure one environment and network, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="ALE/Pong-v5")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each of the three measurements, about")
    parser.add_argument("--cap", type=int, default=200, help="steps of an episode at most")
    parser.add_argument("--set", action="append", default=[], help="option of esker.train, as slots=32")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    options = dict(pair.split("=", 1) for pair in arguments.set)
    fixed = {"device": arguments.device, "world": "cpu", "max_episode_steps": str(arguments.cap)}
    request = configure(arguments.env, {}, config={**options, **fixed}, preset=None)
    cores = available_cores()
    random = random_rate(request, cores, arguments.seconds)
    found = {
        "what": "served",
        "env": arguments.env,
        "options": options,
        "cap": arguments.cap,
        "device": device_name(arguments.device),
        "cores": cores,
        "random_steps_per_second": random,
        **served(request, random, arguments),
    }
    found["ratio"] = found["steps_per_second"] / random
    print(json.dumps(found))
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def random_rate(request: Request, cores: int, seconds: float) -> float:
    """Steps/s of all cores with random actions, one process each."""
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(cores), context.Queue()
    processes = [context.Process(target=_play, args=(request.environment, seconds, barrier, queue)) for _ in range(cores)]
    for process in processes:
        process.start()
    rates = [queue.get(timeout=seconds + 120) for _ in processes]
    for process in processes:
        process.join()
    return float(sum(rates))


def _play(environment: Any, seconds: float, barrier: Any, queue: Any) -> None:
    rows = 16
    probe = environment.make()
    space = probe.action_space
    space.seed(0)
    actions = [[space.sample() for _ in range(rows)] for _ in range(50)]
    kind = np.uint8 if probe.observation_space.dtype == np.uint8 else np.float64
    observations = np.zeros((rows, *probe.observation_space.shape), dtype=kind)
    worlds = open_worlds(exact_vectorizer(environment), environment, rows, 0, Watch([0, 0], [0] * rows))
    for row in range(rows):
        observations[row] = worlds.reset(row, row)
    limit = worlds.limit or environment.max_episode_steps or 10**9
    barrier.wait()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        _, ended = worlds.step(np.asarray(actions[steps % 50]), rows, observations)
        steps += 1
        over = range(rows) if steps % limit == 0 else [end.row for end in ended]
        for row in over:
            observations[row] = worlds.reset(row, steps + row)
    queue.put(steps * rows / (time.perf_counter() - began))


def served(request: Request, random: float, arguments: argparse.Namespace) -> dict[str, Any]:
    """Steps/s of evaluated generations of equal members, and whether they are equal."""
    from dataclasses import replace

    members = 2 * max(16, int(random * arguments.seconds / arguments.cap / 2))
    with_probe = request.environment.make()
    config, _ = request.algorithm.complete(replace(request.config, population=members), request.environment, with_probe)
    began = time.perf_counter()
    state = es.start(config, request.environment, describe(with_probe), True)
    notes: list[str] = []
    engine: Any = es.open_engine(state, Site(Path("."), None, notes.append))
    opened = time.perf_counter() - began
    _evaluate(state, engine)  # every worker has made its environments then
    rates, results = zip(*(_evaluate(state, engine) for _ in range(2)), strict=True)
    engine.close()
    return {
        "members": members,
        "workers": len(engine._server.groups),
        "slots": engine.task.slots,
        "captured": engine._server.groups[0]._forward.captured,
        "pinned": engine._server.groups[0].pinned,
        "opened_s": opened,
        "notes": notes,
        "rates": rates,
        "steps_per_second": max(rates),
        "equal_twice": results[0] == results[1],
    }


def _evaluate(state: Any, engine: Any) -> tuple[float, list[Any]]:
    plan = state.plan()
    began = time.perf_counter()
    engine.evaluate(state.job(), plan)
    seconds = time.perf_counter() - began
    done = [plan.results[item] for item in sorted(plan.results)]
    return sum(result.length for result in done) / seconds, [tuple(result[:4]) for result in done]


if __name__ == "__main__":
    main()
