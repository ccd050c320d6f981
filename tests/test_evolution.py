"""esker.Evolution: what it computes with every kind of worker, and what it leaves behind."""

from __future__ import annotations

import copy
import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import esker
from esker.strategies.conventions import es_torch, evolution_module

FAST = {"noise": "counter", "quiet": True, "workers": 0}


def sphere(x: torch.Tensor) -> torch.Tensor:
    return -(x * x).sum()


def rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return -(100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2).sum(-1)


def small_model(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))


INPUTS = torch.linspace(-1, 1, 24).reshape(8, 3)


def fit(model: nn.Module) -> torch.Tensor:
    return -((model(INPUTS).squeeze(1) - INPUTS.sum(1)) ** 2).mean()


def noisy_fit(model: nn.Module, seed: int) -> float:
    rng = np.random.default_rng(seed)
    return float(fit(model).detach()) + float(np.random.randn()) + float(torch.randn(())) + rng.normal()


def flat(model: nn.Module) -> torch.Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def test_sphere_in_100_dimensions_falls_to_a_thousandth() -> None:
    x = torch.ones(100)
    esker.Evolution(x, sphere, population=50, sigma=0.02, lr=0.1, lr_decay=0.98, **FAST).run(250)
    assert -sphere(x) < 1e-3 * 100


def test_rosenbrock_in_10_dimensions_falls_below_a_tenth() -> None:
    x = torch.zeros(10)
    options = {"noise": "counter", "quiet": True}
    esker.Evolution(x, reward_batch=rosenbrock, population=60, sigma=0.02, lr=0.03, lr_decay=0.997, **options).run(700)
    assert -rosenbrock(x) < 1e-1


def test_workers_threads_and_inline_give_the_same_bits() -> None:
    results = []
    for how in ({"workers": 0}, {"workers": 1}, {"workers": 3}, {"workers": 2, "executor": "threads"}):
        model = small_model()
        seeded = functools.partial(noisy_fit) if how.get("executor") != "threads" else noisy_by_seed
        options = {**FAST, **how}
        if how.get("executor") == "threads":
            reference = small_model()
            esker.Evolution(reference, noisy_by_seed, population=8, lr=0.05, **FAST).run(4)
            esker.Evolution(model, seeded, population=8, lr=0.05, **options).run(4)
            assert torch.equal(flat(model), flat(reference))
        else:
            esker.Evolution(model, seeded, population=8, lr=0.05, evaluations_per_member=2, **options).run(4)
            results.append(flat(model))
    assert not torch.equal(results[0], flat(small_model()))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def noisy_by_seed(model: nn.Module, seed: int) -> float:
    return float(fit(model).detach()) + np.random.default_rng(seed).normal()


def test_a_run_that_failed_resumes_to_the_same_bits(tmp_path: Path) -> None:
    whole, model = small_model(), small_model()
    options = {**FAST, "population": 8, "lr": 0.05, "sigma_decay": 0.9, "final": "last"}
    esker.Evolution(whole, noisy_fit, **options).run(9)
    calls = 0

    def dies(model: nn.Module, seed: int) -> float:
        nonlocal calls
        calls += 1
        if calls > 40:
            raise RuntimeError("power cut")
        return noisy_fit(model, seed)

    with pytest.raises(esker.RunError, match="RuntimeError: power cut"):
        esker.Evolution(model, dies, run_dir=str(tmp_path / "run"), checkpoint_every=3, **options).run(9)
    again = esker.Evolution.resume(tmp_path / "run", small_model(7), noisy_fit, workers=0)
    assert again.iteration == 4
    assert [row["generation"] for row in again.history] == [0, 1, 2, 3]
    resumed = again.run(9 - again.iteration)
    assert torch.equal(flat(resumed), flat(whole))


KILLED = """
import os, sys
import test_evolution as here
import esker

calls = 0

def dies(model, seed):
    global calls
    calls += 1
    if calls > 40:
        os.kill(os.getpid(), 9)
    return here.noisy_fit(model, seed)

options = dict(here.FAST, population=8, lr=0.05, sigma_decay=0.9, final="last", checkpoint_every=3)
esker.Evolution(here.small_model(), dies, run_dir=sys.argv[1], **options).run(9)
"""


def test_a_run_whose_process_was_killed_resumes_to_the_same_bits(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "run")], env=environment, timeout=120)
    assert killed.returncode == -9
    whole = small_model()
    esker.Evolution(whole, noisy_fit, **FAST, population=8, lr=0.05, sigma_decay=0.9, final="last").run(9)
    again = esker.Evolution.resume(tmp_path / "run", small_model(7), noisy_fit, workers=0)
    assert again.iteration == 4
    assert torch.equal(flat(again.run(5)), flat(whole))


def test_resume_replays_facts_when_every_snapshot_but_the_first_is_lost(tmp_path: Path) -> None:
    model = small_model()
    esker.Evolution(model, fit, run_dir=str(tmp_path / "run"), population=8, lr=0.05, final="last", **FAST).run(6)
    for folder in (tmp_path / "run" / "checkpoints").iterdir():
        if folder.name != "000000":
            (folder / "state.safetensors").write_bytes(b"damaged")
    again = esker.Evolution.resume(tmp_path / "run", small_model(3), fit, workers=0)
    assert torch.equal(flat(again.model), flat(model))


def test_resume_refuses_another_model_and_another_sigma(tmp_path: Path) -> None:
    esker.Evolution(small_model(), fit, run_dir=str(tmp_path / "run"), population=4, **FAST).run(1)
    with pytest.raises(esker.UsageError, match="not those of the run"):
        esker.Evolution.resume(tmp_path / "run", nn.Linear(3, 1), fit)
    with pytest.raises(esker.UsageError, match="sigma cannot be changed on resume"):
        esker.Evolution.resume(tmp_path / "run", small_model(), fit, sigma=1.0)


def test_the_command_line_says_who_resumes_such_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from esker.cli import main

    esker.Evolution(small_model(), fit, run_dir=str(tmp_path / "run"), population=4, **FAST).run(1)
    assert main(["resume", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "esker.Evolution.resume(run_dir, model, reward)" in error
    assert error.count("\n") == 1


def test_the_goal_stops_the_run_after_consecutive_iterations() -> None:
    x = torch.ones(4)
    evolution = esker.Evolution(x, lambda x: 7.0, goal=7, patience=3, population=4, **FAST)
    evolution.run(50)
    assert evolution.iteration == 3
    assert evolution.outcome is not None
    assert evolution.outcome.goal_reached


def test_the_model_ends_with_the_best_parameters_or_the_last() -> None:
    for final in ("best", "last"):
        x = torch.zeros(3)
        evolution = esker.Evolution(x, sphere, population=4, antithetic=False, lr=0.5, final=final, **FAST)
        evolution.run(5)
        expected = torch.zeros(3) if final == "best" else evolution.strategy.center
        assert torch.equal(x, expected)
    assert not torch.equal(x, torch.zeros(3))


def test_reports_test_calls_and_the_saved_file_come_at_report_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, tested = tmp_path / "weights.pt", []
    model = small_model()

    def reward(model: nn.Module, render: bool = False) -> torch.Tensor:
        if render:
            tested.append(path.exists())
        return fit(model)

    options = {**FAST, "quiet": False, "population": 4, "final": "last"}
    evolution = esker.Evolution(model, reward, test_kwargs={"render": True}, save_path=path, **options)
    evolution.run(5, report_every=2)
    assert tested == [False, True, True]  # after iterations 2, 4 and, being the last, 5
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["2", "4", "5"]
    assert all("test " in line for line in lines)
    saved = torch.load(path, weights_only=True)
    assert torch.equal(saved["0.weight"], model[0].weight)


def test_an_iteration_callback_stops_the_run() -> None:
    evolution = esker.Evolution(torch.ones(2), sphere, on_iteration=lambda row: row["generation"] == 2, population=4, **FAST)
    evolution.run(10)
    assert evolution.iteration == 3


def test_runs_in_two_parts_equal_one_run() -> None:
    once, twice = torch.ones(5), torch.ones(5)
    esker.Evolution(once, sphere, population=6, final="last", **FAST).run(6)
    evolution = esker.Evolution(twice, sphere, population=6, final="last", **FAST)
    evolution.run(2)
    evolution.run(4)
    assert torch.equal(once, twice)


def test_the_random_state_of_the_caller_is_left_alone() -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    expected = float(torch.rand(())), float(np.random.rand())
    torch.manual_seed(3)
    np.random.seed(3)
    esker.Evolution(small_model_without_seeding(), noisy_fit, population=4, **FAST).run(2)
    assert (float(torch.rand(())), float(np.random.rand())) == expected


def small_model_without_seeding() -> nn.Module:
    model = nn.Linear(3, 1)
    torch.manual_seed(3)
    return model


def test_worker_processes_run_torch_with_one_thread() -> None:
    evolution = esker.Evolution(
        torch.ones(2), lambda x: float(torch.get_num_threads()), population=4, **{**FAST, "workers": 2}
    )
    evolution.run(1)
    assert evolution.history[0]["return_max"] == 1.0


def test_on_error_worst_ranks_failed_members_last() -> None:
    def fails_above(x: torch.Tensor) -> float:
        return float("nan") if x[0] > 0.0 else float(x[0])

    x = torch.full((1,), -1e-3)
    evolution = esker.Evolution(x, fails_above, population=4, sigma=0.1, on_error="worst", **FAST)
    evolution.run(3)
    assert sum(row["failed_members"] for row in evolution.history) > 0
    assert x[0] < 0


def test_the_update_of_evolution_module_is_reproduced() -> None:
    start, rewards = torch.arange(3.0), []

    def reward(weights: list[torch.Tensor]) -> float:
        rewards.append(float(weights[0][0] * 2 + weights[1].sum()))
        return rewards[-1]

    parameters = [start.clone(), torch.zeros(2)]
    options = evolution_module(6, sigma=0.1, learning_rate=0.01)
    evolution = esker.Evolution(parameters, reward, final="last", **options, **FAST)
    noise = np.stack([evolution.strategy.noise.direction(0, i) for i in range(6)])
    evolution.run(1)
    fitness = np.array(rewards[1:])  # the first call is the centre's
    weights = (fitness - fitness.mean()) / fitness.std()
    expected = np.concatenate([start, np.zeros(2)]) + 0.01 / (6 * 0.1) * weights @ noise
    assert np.allclose(torch.cat(parameters).numpy(), expected, rtol=0, atol=1e-6)


def test_the_script_of_evolution_module_runs_with_another_import() -> None:
    from esker import EvolutionModule

    def get_reward(model: nn.Module, weights: list[torch.Tensor]) -> float:
        cloned_model = copy.deepcopy(model)
        for i, param in enumerate(cloned_model.parameters()):
            try:
                param.data = weights[i]
            except Exception:
                param.data = weights[i].data
        return float(fit(cloned_model))

    model = small_model()
    before = float(fit(model).detach())
    partial_func = functools.partial(get_reward, model=model)
    mother_parameters = list(model.parameters())
    es = EvolutionModule(
        mother_parameters, partial_func, population_size=20, sigma=0.1, learning_rate=0.05,
        reward_goal=200, consecutive_goal_stopping=20, threadcount=2, cuda=False, render_test=False, quiet=True,
    )  # fmt: skip
    weights = es.run(30, print_step=10)
    assert [w.shape for w in weights] == [p.shape for p in model.parameters()]
    assert get_reward(model, weights) == pytest.approx(float(fit(model)))
    assert float(fit(model)) > before + 0.1


def test_the_six_lines_of_es_torch_are_reproduced() -> None:
    npop, lr, std, decay, d = 10, 0.04, 0.025, 0.0025, 7
    start = torch.linspace(-1, 1, d)
    es = esker.OpenAIES(start, seed=3, **es_torch(npop, lr, std, decay))
    target = torch.linspace(0, 2, d)
    eps = torch.stack([torch.from_numpy(es.noise.direction(0, k)) for k in range(npop // 2)])
    noise = torch.cat([eps, -eps], 0)
    perturbations = std * noise
    rewards = -((start + perturbations - target) ** 2).sum(1)
    ranks = (rewards.argsort().argsort() - ((len(rewards) - 1) / 2)) / (len(rewards) - 1)
    gradient = lr / (npop * std) * torch.einsum("np,n->p", perturbations, ranks)
    expected = start + gradient - lr * decay * start
    es.tell(-((es.ask().parameters() - target) ** 2).sum(1))
    assert torch.allclose(es.center, expected, rtol=0, atol=1e-6)
    assert not torch.allclose(es.center, start, rtol=0, atol=1e-4)


def test_cartpole_is_solved_from_an_episode_as_the_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "examples"))
    example = importlib.import_module("cartpole")
    torch.manual_seed(0)
    options = {**FAST, **example.SETTINGS["esker"]}
    evolution = esker.Evolution(example.policy(), example.reward, goal=475, patience=5, **options)
    evolution.run(200)
    assert evolution.outcome is not None
    assert evolution.outcome.goal_reached
