"""Worlds in worker processes and policies on a device, here the CPU: the numbers of workers that act themselves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support import center
from test_device import state_of

import esker
from esker.algorithms.device import is_one_batch, world_of
from esker.engines import device as device_engines
from esker.engines import serving
from esker.engines.engine import InlineEngine
from esker.engines.served import ServedEngine
from esker.errors import RunError, UsageError
from esker.noise.counter import CounterNoise
from esker.noise.device import CENTER, DevicePopulation
from esker.noise.lowrank import LowRankNoise
from esker.noise.population import Population
from esker.policies.choose import conv_lstm, nature_cnn
from esker.policies.device import open_rows
from esker.runs.request import configure

CPU = torch.device("cpu")

ON_CPU = {"preset": None, "population": 12, "table_size": 200_000, "quiet": True, "world": "cpu"}
ON_CPU |= {"device": "cpu", "workers": 2, "slots": 4}


def served(state, workers: int, slots: int, job=None, disturb=None) -> dict:
    engine = ServedEngine(replace(state.task, slots=slots), "cpu", workers, state.table)
    plan = state.plan()
    disturbed = threading.Thread(target=disturb or (lambda engine: None), args=[engine])
    disturbed.start()
    try:
        engine.evaluate(job or state.job(), plan)
    finally:
        disturbed.join()
        engine.close()
    return plan.results


def inline(state) -> dict:
    plan = state.plan()
    InlineEngine(state.task, state.table).evaluate(state.job(), plan)
    return plan.results


@pytest.mark.parametrize(
    ("env", "options"),
    [
        ("CartPole-v1", {"episodes_per_member": 2}),
        ("CartPole-v1", {"network": "lstm", "noise": "low-rank"}),
        ("Pendulum-v1", {"action_noise": 0.3}),
        ("InvertedPendulum-v5", {"noise": "low-rank"}),
    ],
)
def test_served_episodes_are_those_of_workers_that_act_themselves(env, options):
    state = state_of(env, sigma=0.1, max_episode_steps=40, **options)
    expected, found = inline(state), served(state, 2, 5)
    assert sorted(found) == sorted(expected)
    for item, result in expected.items():
        assert found[item].length == result.length
        assert found[item].total == pytest.approx(result.total, rel=1e-4)
        if result.statistics is not None:
            assert np.allclose(found[item].statistics, result.statistics, rtol=1e-3, atol=1e-3)


def test_a_run_does_not_depend_on_its_workers_and_resumes_to_the_same_bits(tmp_path: Path):
    options = {**ON_CPU, "max_episode_steps": 60}
    whole = esker.train("CartPole-v1", run_dir=str(tmp_path / "whole"), generations=3, **options)
    esker.train("CartPole-v1", run_dir=str(tmp_path / "half"), generations=1, **{**options, "workers": 1})
    half = esker.resume(tmp_path / "half", generations=3, quiet=True)
    assert np.array_equal(center(whole), center(half))


@pytest.mark.parametrize(("network", "activation"), [("gru", "tanh"), ("mlp", "silu"), ("mlp", "selu")])
def test_a_member_has_the_same_bits_in_every_row(network, activation):
    own = {"activation": activation} if network == "mlp" else {}
    state = state_of("Pendulum-v1", sigma=0.1, population=24, max_episode_steps=30, network=network, hidden=(7,), **own)
    assert outcomes(served(state, 1, 5)) == outcomes(served(state, 2, 5))


def test_a_killed_worker_is_replaced_and_changes_nothing():
    state = state_of("CartPole-v1", sigma=0.1, population=40, max_episode_steps=200, network="lstm")
    killed = []

    def kill_one_that_asks(engine):
        header = engine._server.groups[0].header
        while header[serving.ASKED] < 5:
            time.sleep(0.001)
        killed.append(engine.pids[0])
        os.kill(engine.pids[0], signal.SIGKILL)

    assert outcomes(served(state, 2, 8, disturb=kill_one_that_asks)) == outcomes(served(state, 1, 8))
    assert killed


def outcomes(results: dict) -> dict:
    return {item: result[:4] for item, result in results.items()}


def test_time_spent_waiting_for_the_device_is_not_the_environments(monkeypatch):
    state = state_of("CartPole-v1", population=4, max_episode_steps=3)
    launch = serving.Group.launch

    def slow(self, population):
        time.sleep(0.4)
        return launch(self, population)

    monkeypatch.setattr(serving.Group, "launch", slow)
    engine = ServedEngine(replace(state.task, slots=4), "cpu", 1, state.table, step_timeout=0.2)
    plan = state.plan()
    with contextlib.closing(engine):
        engine.evaluate(state.job(), plan)
    assert plan.complete is not None


def test_a_server_that_finds_no_memory_leaves_nothing_open(monkeypatch):
    state = state_of("CartPole-v1")

    def full(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(serving, "Group", full)
    before = open_files()
    with pytest.raises(torch.OutOfMemoryError):
        ServedEngine(replace(state.task, slots=4), "cpu", 3, state.table)
    assert not open_files() - before


def open_files() -> set[tuple[int, int]]:
    """What this process holds open, by device and inode: a leak is something new, while what an earlier
    test left may be closed by the garbage collector meanwhile."""
    files = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own descriptor
            found = os.fstat(int(descriptor))
            files.add((found.st_dev, found.st_ino))
    return files


def test_what_the_device_raises_ends_the_run_with_its_reason(monkeypatch):
    state = state_of("CartPole-v1")

    def broken(self, population):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(serving.Group, "launch", broken)
    with pytest.raises(RunError, match=r"policies on cpu failed: .*CUDA out of memory"):
        served(state, 1, 4)


def test_out_of_memory_halves_the_slots_of_each_worker(monkeypatch):
    def small(episodes, device, workers, table, step_timeout):
        if episodes.slots > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return episodes.slots, workers

    monkeypatch.setattr(device_engines, "ServedEngine", small)
    state, said = state_of("CartPole-v1"), []
    task = replace(state.task, slots=8)
    made = device_engines.served_engine(task, "cuda", 3, None, None, said.append)
    assert (made, said) == ((2, 3), ["cuda has no memory for 8 slots; continuing with 2"])


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("CartPole-v1", {"workers": 0}, "workers is 0; with policies on a device expected 1 to 1,024"),
        ("CartPole-v1", {"device": "cuda:99"}, "device is 'cuda:99'"),
        ("Pendulum-v1", {"network": "torch_modules:Unbatchable"}, "cannot be batched by torch.vmap"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(tmp_path: Path, env, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        esker.train(env, run_dir=str(tmp_path / "x"), **{**ON_CPU, **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("env", "options", "world"),
    [
        ("CartPole-v1", {}, "torch"),
        ("CartPole-v1", {"vectorizer": "native"}, "cpu"),
        ("Pendulum-v1", {"time_aware": True}, "cpu"),
        ("LunarLander-v3", {}, "cpu"),
    ],
)
def test_worlds_are_on_the_device_where_they_can_be(env, options, world):
    request = configure(env, {"device": "cuda", **options}, preset=None)
    assert world_of(request.config, request.environment) == world
    assert is_one_batch(request.config, request.environment) == (world != "cpu")


def image_network(name: str, shape: tuple[int, ...]):
    options = SimpleNamespace(channels=4, lstm_size=6, initializer="xavier", normalize_observations=True)
    network = (nature_cnn if name == "nature-cnn" else conv_lstm)(options, shape, 3)
    return replace(network, reference=np.random.default_rng(2).integers(0, 256, (5, *shape), dtype=np.uint8))


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize(
    ("name", "shape"),
    [("nature-cnn", (2, 36, 40)), ("nature-cnn", (36, 36, 3)), ("conv-lstm", (20, 24)), ("conv-lstm", (1, 21, 21))],
)
def test_convolutions_on_a_device_compute_what_rows_of_a_worker_do(name, shape, rank):
    network = image_network(name, shape)
    noise = LowRankNoise(1, tuple(network.shapes.values()), rank) if rank else CounterNoise(1, network.dimension)
    population = Population(network.initial(np.random.default_rng(0)), 0.1, 2, True, noise, range(3))
    rows, on_device, members = network.open(3), open_rows(network, noise, 3, CPU), DevicePopulation(noise, CPU)
    members.begin(population)
    on_device.begin(0, members)
    on_device.load(members, torch.tensor([2, 0, 1]), np.array([2, 0, 1]))
    for member in range(3):
        population.write(member, rows.parameters[member])
        rows.start(member)
    images = np.random.default_rng(1).integers(0, 256, (3, 3, *shape), dtype=np.uint8)
    with torch.no_grad():
        for each in images:  # memory, if any, goes on
            assert np.allclose(on_device.forward(torch.from_numpy(each)).numpy(), rows.forward(each), atol=1e-4)
        on_device.load(members, torch.tensor([1]), np.array([CENTER]))
        rows.parameters[1] = population.center
        rows.start(1)
        assert np.allclose(on_device.forward(torch.from_numpy(images[0])).numpy(), rows.forward(images[0]), atol=1e-4)


def test_the_benchmark_of_served_policies_runs_to_its_file(tmp_path: Path) -> None:
    script, out = Path(__file__).parent.parent / "benchmarks" / "served.py", tmp_path / "found.json"
    flags = ["--env", "CartPole-v1", "--device", "cpu", "--seconds", "0.1", "--cap", "20", "--out", str(out)]
    subprocess.run([sys.executable, str(script), *flags], check=True, capture_output=True)
    found = json.loads(out.read_text())
    assert found["equal_twice"]
    assert found["ratio"] == found["steps_per_second"] / found["random_steps_per_second"]
