"""The Ray engine: the same bits as without Ray, whatever comes, goes or dies on the way."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_helpers import during, wait_for

from esker.algorithms.episodes_task import build_task
from esker.cluster.shared_update import SharedNoise, ranges
from esker.config.options import ESConfig
from esker.engines.demand import Demand
from esker.engines.engine import InlineEngine
from esker.engines.node import setup_for
from esker.engines.packing import pack, unpack
from esker.engines.plan import Plan
from esker.engines.ray import RayEngine
from esker.engines.roster import Roster
from esker.noise.population import Population
from esker.noise.table import NoiseTable, TableNoise
from esker.runs.about import describe
from esker.tasks.episodes import Episodes
from esker.tasks.task import Job, Result
from esker.worlds.environments import Environment

MEMBERS = 40


def make_task(env: str = "CartPole-v1", slots: int = 4, hidden: int = 8, **kwargs: Any) -> Episodes:
    environment = Environment(env, kwargs=kwargs)
    config = ESConfig(env=env, hidden=(hidden,), center_episodes=2, slots=slots, noise="counter")
    return build_task(config, environment, describe(environment.make()))


def make_job(task: Episodes, generation: int = 3) -> Job:
    center = task.network.initial(np.random.default_rng(0))
    return Job(Population(center, 0.1, generation, True, None, range(0)))


def evaluated(engine: Any, task: Episodes, **options: Any) -> dict[int, Any]:
    """Every result of one generation, as comparable values."""
    plan = Plan(MEMBERS, center=2, unit=2, **options)
    engine.evaluate(make_job(task), plan)
    assert plan.complete is not None
    used = range(2 + plan.complete)
    return {item: _plain(plan.results[item]) for item in used}


def _plain(result: Result) -> tuple[Any, ...]:
    sums = () if result.statistics is None else tuple(part.tobytes() for part in result.statistics)
    return result.fitness, result.total, result.length, sums, result.error


@contextmanager
def ray_engine(task: Episodes, note: Any = None) -> Iterator[RayEngine]:
    engine = RayEngine(Roster(setup_for(task), Demand()), note)
    try:
        yield engine
    finally:
        engine.close()


def workers_of(engine: RayEngine) -> list[int]:
    import ray

    return [pid for node in engine.nodes for pid in ray.get(node.actor.pids.remote(), timeout=30)]


def test_packing_gives_back_every_bit() -> None:
    results = [
        Result(7, 0.1 + 0.2, -3.5, 12, (np.array([1e-17, 2.0]), np.array([3.0, np.pi]))),
        Result(9, 1.0, 1.0, 3),
        Result(4, 0.0, 0.0, 5, None, "ValueError: no", "trace"),
    ]
    back = unpack(pack(results))
    assert [_plain(result) for result in back] == [_plain(result) for result in results]
    assert [result.item for result in back] == [7, 9, 4]
    assert back[2].trace == "trace"


def test_two_nodes_give_the_bits_of_one_process_also_with_a_step_minimum(two_nodes: Any) -> None:
    task = make_task()
    inline = InlineEngine(task, None)
    with ray_engine(task) as engine:
        for options in ({}, {"min_steps": 3000}):
            expected = evaluated(inline, task, **options)
            assert evaluated(engine, task, **options) == expected
        assert len(engine.nodes) == 2


def test_a_worker_and_then_a_node_engine_killed_in_mid_episode_change_no_bit(two_nodes: Any) -> None:
    task = make_task("cluster_worlds:make_slow")
    expected = evaluated(InlineEngine(make_task("cluster_worlds:make_slow", pause=0.0), None), task)
    said: list[str] = []
    with ray_engine(task, note=said.append) as engine:
        evaluated(engine, task)
        kill_worker = during(lambda: os.kill(workers_of(engine)[0], signal.SIGKILL), after=0.2)
        assert evaluated(engine, task) == expected
        kill_worker.join()
        kill_engine = during(lambda: os.kill(engine.nodes[0].pid, signal.SIGKILL), after=0.2)
        assert evaluated(engine, task) == expected
        kill_engine.join()
    assert any("was lost" in text for text in said)


def test_four_nodes_evaluate_and_update_to_the_bits_of_one_machine_from_one_noise_table(four_nodes: Any) -> None:
    seed, size, generation = 0, 200_000, 5
    task = make_task(hidden=100)
    table = NoiseTable.create(seed, size)
    noise = task.noise(table)
    assert isinstance(noise, TableNoise)
    weights = np.random.default_rng(1).standard_normal(300)
    expected = evaluated(InlineEngine(task, table), task)
    engine = RayEngine(Roster(setup_for(task, (seed, size), shared=table), Demand()))
    try:
        wait_for(lambda: evaluated(engine, task) == expected and len(engine.nodes) == 4)
        shared = SharedNoise(noise, engine, message=1).weighted_sum(generation, weights)
        tables = [os.fstat(table.descriptor).st_ino in inodes(node.pid) for node in engine.nodes]
    finally:
        engine.close()
    assert shared.tobytes() == noise.weighted_sum(generation, weights).tobytes()
    assert ranges(1000, 3) == [(0, 320), (320, 640), (640, 1000)]
    assert tables == [True] * 4  # all nodes of this test are on one machine


@pytest.mark.faults
def test_a_run_that_wants_a_gpu_per_node_takes_it_where_there_is_one(two_nodes: Any) -> None:
    import ray

    node = two_nodes.add(num_gpus=1)  # Ray believes it
    engine = RayEngine(Roster(setup_for(make_task()), Demand(gpus_per_node=1)))
    try:
        evaluated(engine, make_task())
        assert [used.id for used in engine.nodes] == [node.node_id]
        wait_for(lambda: ray.available_resources().get("GPU", 0) == 0)
    finally:
        engine.close()
        two_nodes.remove(node)


def inodes(pid: int) -> set[int]:
    """The files that a process has open."""
    return {file.stat().st_ino for file in Path(f"/proc/{pid}/fd").iterdir() if file.exists()}


def test_the_noise_table_of_another_process_is_taken_only_if_it_is_the_right_one() -> None:
    table = NoiseTable.create(3, 100_000)
    taken = NoiseTable.of_process(os.getpid(), table.descriptor, 3, 100_000)
    assert taken is not None
    assert taken.descriptor != table.descriptor
    assert taken.values.tobytes() == table.values.tobytes()
    pipe, _ = os.pipe()
    for wrong in ((4, 100_000), (3, 99_999)):
        assert NoiseTable.of_process(os.getpid(), table.descriptor, *wrong) is None
    assert NoiseTable.of_process(os.getpid(), pipe, 3, 100_000) is None
    assert NoiseTable.of_process(1 << 30, 3, 3, 100_000) is None
