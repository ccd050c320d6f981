"""Worlds and policies on a torch device, here the CPU: the numbers of the slots in worker processes, and of Gymnasium."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from support import center

import esker
from esker import api
from esker.algorithms import es
from esker.engines import device as device_engines
from esker.engines.engine import InlineEngine
from esker.errors import UsageError
from esker.noise.address import Purpose, keys
from esker.noise.counter import CounterNoise
from esker.noise.device import CENTER, DevicePopulation
from esker.noise.device_actions import ActionNoise
from esker.noise.lowrank import LowRankNoise
from esker.noise.population import Population
from esker.noise.table import NoiseTable, TableNoise
from esker.policies.choose import recurrent
from esker.policies.device import open_rows
from esker.policies.mlp import MLP
from esker.policies.module import module_network
from esker.runs.about import describe
from esker.runs.loading import evaluate
from esker.runs.request import configure
from esker.tasks.addresses import counts_observations, members_of, reset_seeds
from esker.tasks.device import DeviceEpisodes
from esker.worlds.device import open_world
from esker.worlds.environments import resolve

CPU = torch.device("cpu")
BASE = {"preset": None, "population": 16, "table_size": 200_000, "hidden": (8,), "workers": 0, "quiet": True}
CAPPED = {"adaptive_cap": "threshold", "cap_growth": {"initial": 6, "threshold": 0.5, "factor": 2}}
ON_CPU = {**BASE, "world": "torch", "device": "cpu"}


def state_of(env: str, **options):
    request = configure(env, {k: v for k, v in {**BASE, **options}.items() if k != "preset"}, preset=None)
    with_probe = request.environment.make()
    return es.start(request.config, request.environment, describe(with_probe), True)


def evaluated(state, task, job=None) -> dict:
    plan = state.plan()
    engine = InlineEngine(task, state.table)
    engine.evaluate(job or state.job(), plan)
    engine.close()
    return plan.results


@pytest.mark.parametrize("scale", [0.3, np.linspace(0.1, 0.5, 50, dtype=np.float32)])
@pytest.mark.parametrize("antithetic", [True, False])
def test_a_member_has_the_bits_that_it_has_on_the_cpu(scale, antithetic):
    noise = TableNoise(NoiseTable.create(3, 5_000), 3, 50)
    center_of = np.random.default_rng(0).standard_normal(50).astype(np.float32)
    population = Population(center_of, scale, 4, antithetic, noise, range(6))
    on_device = DevicePopulation(noise, CPU)
    on_device.begin(population)
    found = torch.cat(list(on_device.parameters(np.arange(6), [slice(0, 20), slice(20, 50)])), dim=1)
    assert torch.equal(found, population.parameters())
    (own,) = on_device.parameters(np.array([CENTER]), [slice(0, 50)])
    assert np.array_equal(own[0].numpy(), center_of)


def network_named(name: str):
    options = SimpleNamespace(network=name, hidden=(6, 5), activation="tanh", initializer="xavier")
    if ":" in name:
        return module_network(name, (4,), 3, images=False)
    if name in ("lstm", "gru"):
        return recurrent(options, 4, 3)
    return MLP((4, 3) if name == "linear" else (4, 8, 7, 3), "selu")


@pytest.mark.parametrize("name", ["mlp", "linear", "lstm", "gru", "torch_modules:Plain", "torch_modules:Recurrent"])
@pytest.mark.parametrize("rank", [None, 1, 2])
def test_rows_on_a_device_compute_what_rows_of_a_worker_do(name, rank):
    network = network_named(name)
    shapes = tuple(network.shapes.values())
    noise = CounterNoise(1, network.dimension) if rank is None else LowRankNoise(1, shapes, rank)
    start = network.initial(np.random.default_rng(0))
    population = Population(start, 0.3, 2, True, noise, range(5))
    rows, on_device = network.open(5), open_rows(network, noise, 5, CPU)
    members = DevicePopulation(noise, CPU)
    members.begin(population)
    on_device.begin(0, members)
    on_device.load(members, torch.arange(5), np.arange(5))
    for member in range(5):
        population.write(member, rows.parameters[member])
        rows.start(member)
    inputs = np.random.default_rng(1).standard_normal((3, 5, 4)).astype(np.float32)
    with torch.no_grad():
        for each in inputs:
            assert np.allclose(on_device.forward(torch.from_numpy(each)).numpy(), rows.forward(each), atol=2e-5)
        on_device.load(members, torch.tensor([2]), np.array([CENTER]))  # a new episode in one row: its state begins anew
        rows.parameters[2] = start
        rows.start(2)
        assert np.allclose(on_device.forward(torch.from_numpy(inputs[0])).numpy(), rows.forward(inputs[0]), atol=2e-5)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "MountainCar-v0", "Acrobot-v1"])
def test_classic_worlds_step_as_gymnasium_does(name):
    environment, _ = resolve(name)
    worlds = open_world("torch", environment, 3, CPU)
    envs = [gym.make(name) for _ in range(3)]
    seeds = np.array([5, 6, 7])
    first = worlds.reset(torch.arange(3), seeds)
    assert np.array_equal(first.numpy(), [env.reset(seed=int(seed))[0] for env, seed in zip(envs, seeds, strict=True)])
    live = [True] * 3
    envs[0].action_space.seed(0)
    for _ in range(60):
        actions = [envs[0].action_space.sample() for _ in envs]
        observations, rewards, terminated = worlds.step(torch.as_tensor(np.array(actions)))
        for row, env in enumerate(envs):
            if live[row]:
                expected, reward, over, _, _ = env.step(actions[row])
                assert np.allclose(observations[row].numpy(), expected, rtol=0, atol=1e-6)
                assert float(rewards[row]) == pytest.approx(reward, abs=1e-9)
                assert over == (terminated is not None and bool(terminated[row]))
                live[row] = not over
    assert worlds.limit == envs[0].spec.max_episode_steps


@pytest.mark.parametrize("options", [{}, {"antithetic": False, "common_seeds": False}, {"episodes_per_member": 3}])
def test_addresses_of_many_items_are_those_of_each(options):
    task = replace(state_of("CartPole-v1", **options).task, statistics_share=0.4)
    items = np.arange(30)
    members, episodes = members_of(task, items)
    assert [(None if m < 0 else m, e) for m, e in zip(members, episodes, strict=True)] == [
        task.address(i) for i in range(30)
    ]
    assert reset_seeds(task, 7, members, episodes).tolist() == [task.reset_seed(7, i) for i in range(30)]
    expected = [task.counts_observations(7, i) for i in range(30)]
    assert counts_observations(task, 7, members, episodes).tolist() == expected
    assert any(expected)


@pytest.mark.parametrize("slots", [1, 7, 64])
@pytest.mark.parametrize("options", [{}, {"shaping": "sign"}, {"noise": "low-rank"}, {"episodes_per_member": 2}, CAPPED])
def test_cartpole_episodes_on_a_device_end_as_in_worker_processes(slots, options):
    state = state_of("CartPole-v1", sigma=0.1, max_episode_steps=40, **options)
    expected = evaluated(state, state.task)
    found = evaluated(state, DeviceEpisodes(state.task, "torch", "cpu", slots))
    assert sorted(found) == sorted(expected)
    for item, result in expected.items():
        assert found[item][:4] == result[:4]
        assert (found[item].statistics is None) == (result.statistics is None)
        if result.statistics is not None:
            assert np.allclose(found[item].statistics, result.statistics, atol=1e-4)


def test_normalised_pendulum_returns_on_a_device_are_those_of_worker_processes():
    state = state_of("Pendulum-v1", sigma=0.1, action_mode="tanh", max_episode_steps=50)
    state.statistics = state.statistics.plus(10, np.array([1.0, 2.0, 3.0]), np.array([5.0, 9.0, 30.0]))
    expected = evaluated(state, state.task)
    found = evaluated(state, DeviceEpisodes(state.task, "torch", "cpu", 5))
    for item, result in expected.items():
        assert found[item].total == pytest.approx(result.total, rel=1e-4)


def test_a_member_whose_outputs_are_not_finite_has_no_return():
    state = state_of("Pendulum-v1", max_episode_steps=5, on_error="worst")
    job = replace(state.job(), population=replace(state.job().population, scale=1e38))
    found = evaluated(state, DeviceEpisodes(state.task, "torch", "cpu", 30), job)
    assert any(result.error and "not finite" in result.error for result in found.values())
    assert all(result.error is None for item, result in found.items() if item < 4)  # the centre's


def test_a_run_on_a_device_says_so_and_resumes_to_the_same_bits(tmp_path: Path):
    whole = esker.train("CartPole-v1", run_dir=str(tmp_path / "whole"), generations=4, **ON_CPU)
    esker.train("CartPole-v1", run_dir=str(tmp_path / "half"), generations=2, **ON_CPU)
    half = esker.resume(tmp_path / "half", generations=4, quiet=True)
    assert np.array_equal(center(whole), center(half))
    assert json.loads((tmp_path / "whole" / "about.json").read_text())["device"] == "cpu"


@pytest.mark.parametrize("algo", ["pgpe", "snes", "sep-cma", "cma"])
def test_every_synchronous_strategy_runs_on_a_device(tmp_path: Path, algo):
    run = esker.train("CartPole-v1", algo=algo, run_dir=str(tmp_path / algo), generations=2, **ON_CPU)
    assert [row["members"] for row in run.history] == [16, 16]


def test_cartpole_is_solved_on_a_device(tmp_path: Path):
    options = {**ON_CPU, "population": 40, "sigma": 0.1, "lr": 0.1, "generations": 12, "center_episodes": 2}
    run = esker.train("CartPole-v1", run_dir=str(tmp_path / "run"), **options)
    assert max(row["center_return"] for row in run.history) > 300


def test_a_swarm_is_trained_on_many_rows_and_judged_on_one(tmp_path: Path):
    options = {**ON_CPU, "population": 8, "generations": 2, "statistics_episodes": 2}
    run = esker.train("esker.worlds.device.swarm:Swarm", run_dir=str(tmp_path / "run"), **options)
    assert all(row["episode_length_mean"] == 100 for row in run.history)
    assert len(evaluate(run.path, episodes=2, workers=0)[0].returns) == 2


def test_a_swarms_row_is_its_gymnasium_environment():
    environment, _ = resolve("esker.worlds.device.swarm:Swarm")
    worlds, env = open_world("torch", environment, 3, CPU), environment.make()
    first = worlds.reset(torch.arange(3), np.array([4, 5, 6]))
    assert np.array_equal(first[1].numpy(), env.reset(seed=5)[0])
    env.action_space.seed(0)
    for _ in range(5):
        actions = np.stack([env.action_space.sample() for _ in range(3)])
        observations, rewards, _ = worlds.step(torch.from_numpy(actions))
        expected, reward, _, _, _ = env.step(actions[1])
        assert np.allclose(observations[1].numpy(), expected, atol=1e-6)
        assert float(rewards[1]) == pytest.approx(reward, abs=1e-6)


def test_a_world_of_the_users_own_is_refilled_by_its_own_ends():
    state = state_of("Pendulum-v1", population=20, episodes_per_member=2)
    found = evaluated(state, DeviceEpisodes(state.task, "device_worlds:Echo", "cpu", 6))
    lengths = {item: 1 + state.task.reset_seed(0, item) % 7 for item in found}
    assert {item: result.length for item, result in found.items()} == lengths
    for item, result in found.items():  # the observation is the length, and constant
        if result.statistics is not None:
            assert np.array_equal(result.statistics[0], np.full(3, float(lengths[item] ** 2)))


def test_a_world_that_observes_something_else_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"device_worlds:Wide has observations of shape \(5,\); Pendulum-v1 has \(3,\)"):
        esker.train("Pendulum-v1", run_dir=str(tmp_path / "x"), **{**ON_CPU, "world": "device_worlds:Wide"})


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        ("LunarLander-v3", {"world": "torch", "device": "cpu"}, "world is 'torch', which has"),
        ("CartPole-v1", {"world": "torch", "device": "tpu"}, "device is 'tpu'; expected cpu, cuda or cuda:N"),
        ("CartPole-v1", {"world": "torhc", "device": "cpu"}, "world is 'torhc'; expected"),
        ("CartPole-v1", {"world": "no_such:thing", "device": "cpu"}, "no_such"),
        ("CartPole-v1", {"world": "torch", "engine": "ray", "workers": 1}, "for --engine local"),
        ("CartPole-v1", {"world": "torch", "time_aware": True}, "time_aware is for environments on the CPU"),
        ("CartPole-v1", {"world": "torch", "vectorizer": "native"}, "vectorizer is for environments in worker processes"),
        ("Pendulum-v1", {"world": "torch", "fresh_environments": True}, "fresh_environments is for environments in worker"),
    ],
)
def test_what_a_device_cannot_do_is_refused_in_one_line(tmp_path: Path, env, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        esker.train(env, run_dir=str(tmp_path / "x"), **{**BASE, **options})
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_refused_in_one_line(tmp_path: Path):
    with pytest.raises(UsageError, match="device is 'cuda', and this machine's torch has no CUDA; use --device cpu"):
        esker.train("CartPole-v1", run_dir=str(tmp_path / "x"), **{**BASE, "device": "cuda"})


def test_out_of_memory_halves_the_slots_and_says_so(monkeypatch):
    real = device_engines.InlineEngine

    def small(task, table):
        if task.slots > 20:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(task, table)

    monkeypatch.setattr(device_engines, "InlineEngine", small)
    state, said = state_of("CartPole-v1"), []
    device_engines.device_engine(DeviceEpisodes(state.task, "torch", "cpu", 64), state.table, said.append)
    assert said == ["cpu has no memory for 64 slots; continuing with 16"]


SEEDS = [3, 5, 8]


@pytest.mark.parametrize("options", [{}, {"noise": "counter"}, {"noise": "low-rank"}, {"network": "gru"}])
def test_seeds_in_one_batch_have_the_bits_of_runs_alone(tmp_path: Path, options):
    chosen = {**ON_CPU, "generations": 3, "sigma": 0.1, "max_episode_steps": 60, **options}
    together = api.train_seeds("CartPole-v1", SEEDS, run_dir=str(tmp_path / "batch"), **chosen)
    for seed, run in zip(SEEDS, together, strict=True):
        alone = esker.train("CartPole-v1", seed=seed, run_dir=str(tmp_path / f"alone{seed}"), **chosen)
        assert run.path == tmp_path / "batch" / f"s{seed}"
        assert np.array_equal(center(run), center(alone))
        assert [row["return_mean"] for row in run.history] == [row["return_mean"] for row in alone.history]


def test_a_batch_resumes_to_the_bits_of_runs_that_never_stopped(tmp_path: Path):
    options = {**ON_CPU, "sigma": 0.1, "max_episode_steps": 60, "slots": 12}  # four each: items wait for free rows
    whole = api.train_seeds("CartPole-v1", SEEDS, run_dir=str(tmp_path / "whole"), generations=4, **options)
    half = api.train_seeds("CartPole-v1", SEEDS, run_dir=str(tmp_path / "half"), generations=2, **options)
    again = api.resume_together([run.path for run in half], generations=4, quiet=True)
    assert [run.status for run in again] == ["finished: 4 generations done"] * 3
    for one, other in zip(whole, again, strict=True):
        assert np.array_equal(center(one), center(other))


def test_action_noise_on_a_device_is_normal_and_named_by_episode_and_step():
    noise = ActionNoise(2_000, 3, CPU)
    drawn = keys(7, Purpose.ACTION_NOISE, 0, np.arange(2_000), 0)
    noise.start(torch.arange(2_000), drawn, np.full(2_000, 0.5, dtype=np.float32))
    values = torch.stack([noise.draw() for _ in range(20)]).double()
    assert float(values.mean()) == pytest.approx(0, abs=0.005)
    assert float(values.std()) == pytest.approx(0.5, rel=0.01)
    assert float((values / 0.5).pow(4).mean()) == pytest.approx(3, rel=0.05)
    assert abs(float(torch.corrcoef(values[:2].reshape(2, -1))[0, 1])) < 0.05
    noise.start(torch.tensor([5]), drawn[9:10], np.array([0.5], dtype=np.float32))  # another row, the same episode
    assert torch.equal(noise.draw()[5].double(), values[0, 9])


@pytest.mark.parametrize("mode", ["direct", "tanh"])
def test_action_noise_is_of_members_alone_whatever_the_slots(mode):
    quiet = state_of("Pendulum-v1", max_episode_steps=20, action_mode=mode)
    noisy = state_of("Pendulum-v1", max_episode_steps=20, action_mode=mode, action_noise=0.3)
    still = evaluated(quiet, DeviceEpisodes(quiet.task, "torch", "cpu", 32))
    few, many = (evaluated(noisy, DeviceEpisodes(noisy.task, "torch", "cpu", slots)) for slots in (5, 32))
    center = range(noisy.task.center_episodes)
    assert [many[item].total for item in center] == [still[item].total for item in center]
    assert [few[item].total for item in sorted(few)] == [many[item].total for item in sorted(many)]
    assert all(many[item].total != still[item].total for item in many if item not in center)
