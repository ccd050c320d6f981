"""What a request may look like: other people's names, goals without patience, objects in place of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
import worlds
from small_runs import QUICK, small_run

import esker
from esker.cli import main
from esker.errors import UsageError
from esker.runs.request import configure


@pytest.mark.parametrize(
    ("algo", "other", "name", "value"),
    [
        ("es", "learning_rate", "lr", 0.1),
        ("es", "total_timesteps", "steps", 1000),
        ("es", "n_envs", "workers", 3),
        ("es", "popsize", "population", 8),
        ("es", "stdev_init", "sigma", 0.3),
        ("es", "num_actors", "workers", 3),
        ("td3", "gamma", "discount", 0.9),
        ("td3", "buffer_size", "replay_size", 5000),
    ],
)
def test_names_of_other_libraries_are_understood_with_a_notice(algo: str, other: str, name: str, value: float) -> None:
    request = configure("Pendulum-v1", {other: value}, algo=algo)
    assert getattr(request.config, name) == value
    assert f"{other} = {value} is {name} = {value}" in request.notices


def test_flag_of_another_library_is_understood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--preset", "none", "--popsize", "6", "--learning-rate", "0.1", "--generations", "1", "--workers", "0"]
    assert (
        main(["train", "CartPole-v1", *flags, "--hidden", "8", "--noise", "counter", "--run-dir", str(tmp_path / "r")]) == 0
    )
    assert "note: learning_rate = 0.1 is lr = 0.1" in capsys.readouterr().out
    assert (esker.Run(tmp_path / "r").config.population, esker.Run(tmp_path / "r").config.lr) == (6, 0.1)


def test_two_names_for_one_option_are_refused() -> None:
    with pytest.raises(UsageError, match="popsize is 8 and population is 6, which mean the same; give population alone"):
        configure("CartPole-v1", {"popsize": 8, "population": 6})


def test_goal_beside_a_presets_patience() -> None:
    request = configure("CartPole-v1", {"goal": 400})
    assert (request.config.goal, request.config.patience) == (400, 3)


@pytest.mark.parametrize("none", ["none", None])
def test_goal_none_takes_the_presets_patience_with_it(none: str | None) -> None:
    config = configure("CartPole-v1", {"goal": none}).config
    assert (config.goal, config.patience) == (None, None)


def test_resume_with_new_limits_continues_after_the_goal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run"
    run = esker.train("CartPole-v1", run_dir=str(path), goal=1.0, patience=1, **(QUICK | {"generations": 50}))
    assert (run.status[:22], len(run.history)) == ("finished: goal reached", 1)
    assert main(["resume", str(path), "--generations", "3", "--no-quiet"]) == 0
    assert "note: the goal was reached; training continues without it" in capsys.readouterr().out
    assert len(run.history) == 3
    assert main(["resume", str(path), "--goal", "none", "--generations", "4"]) == 0
    assert len(run.history) == 4


def test_preset_for_another_environment_is_reported() -> None:
    notices = configure("CartPole-v1", {}, preset="hopper/ars").notices
    assert "preset hopper/ars was made for Hopper-v5, and this is CartPole-v1; its own is cartpole/es" in notices
    assert not [text for text in configure("CartPole-v1", {}).notices if "was made for" in text]


def same_center(first: Path, second: Path) -> bool:
    centers = [esker.load(path, "latest", trust=True).parameters for path in (first, second)]
    return np.array_equal(*centers)


@pytest.mark.parametrize("workers", [0, 2])
def test_instance_trains_as_its_id_does(tmp_path: Path, workers: int) -> None:
    options = QUICK | {"generations": 2, "workers": workers}
    esker.train(gym.make("Pendulum-v1", g=9.0), run_dir=str(tmp_path / "instance"), **options)
    esker.train("Pendulum-v1", env_kwargs={"g": 9.0}, run_dir=str(tmp_path / "named"), **options)
    assert same_center(tmp_path / "instance", tmp_path / "named")
    assert esker.Run(tmp_path / "instance").config.env_kwargs == {"g": 9.0}


def test_instance_without_an_id_is_copied_and_passed_again_on_resume(tmp_path: Path) -> None:
    env: Any = worlds.Corridor(length=5)
    run = esker.train(env, run_dir=str(tmp_path / "run"), **(QUICK | {"generations": 1, "workers": 2}))
    esker.train(lambda: worlds.Corridor(length=5), run_dir=str(tmp_path / "other"), **(QUICK | {"generations": 2}))
    with pytest.raises(UsageError, match="pass it again"):
        esker.resume(run.path, generations=2)
    esker.resume(run.path, env=env, generations=2)
    assert same_center(tmp_path / "run", tmp_path / "other")


@pytest.mark.parametrize("workers", [0, 2])
def test_network_defined_here_trains_evaluates_and_resumes(tmp_path: Path, workers: int) -> None:
    class Net(torch.nn.Module):
        def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(shape[0], outputs)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)

    options = {k: v for k, v in QUICK.items() if k != "hidden"} | {"generations": 1, "workers": workers}
    run = esker.train("CartPole-v1", network=Net, run_dir=str(tmp_path / "run"), **options)
    assert run.policy("latest").act(np.zeros(4)) in (0, 1)
    esker.resume(run.path, network=Net, generations=2)
    whole = options | {"generations": 2}
    esker.train("CartPole-v1", network=Net, run_dir=str(tmp_path / "whole"), **whole)
    assert same_center(run.path, tmp_path / "whole")


def test_module_instance_is_where_training_begins(tmp_path: Path) -> None:
    module = torch.nn.Linear(4, 2)
    options = {k: v for k, v in QUICK.items() if k != "hidden"} | {"generations": 1}
    run = esker.train("CartPole-v1", network=module, run_dir=str(tmp_path / "run"), **options)
    expected = torch.cat([module.weight.detach().reshape(-1), module.bias.detach()]).numpy()
    np.testing.assert_array_equal(run.policy(0).parameters, expected)


def test_other_network_on_resume_is_refused() -> None:
    with pytest.raises(UsageError, match="and this run's is 'mlp'"):
        esker.resume(small_run(), network=torch.nn.Linear(4, 2), generations=9)


@pytest.mark.parametrize("flags", [["--strategy", "snes"], ["--algo", "snes", "--strategy", "snes"]])
def test_a_strategy_that_is_an_algorithm_may_be_named_as_one(flags: list[str], tmp_path: Path) -> None:
    options = ["--preset", "none", "--generations", "1", "--population", "4", "--workers", "0", "--hidden", "4", "--quiet"]
    path = tmp_path / "run"
    assert main(["train", "CartPole-v1", *flags, "--stdev-lr", "0.2", *options, "--run-dir", str(path)]) == 0
    assert 'algo = "snes"' in (path / "config.toml").read_text()


def test_a_file_may_name_a_strategy_and_a_flag_an_option_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run"
    file = '{"strategy": "snes", "workers": 0, "hidden": [4], "generations": 1}'
    assert main(["train", "CartPole-v1", "--config", file, "--stdev-lr", "0.2", "--quiet", "--run-dir", str(path)]) == 0
    assert "stdev_lr = 0.2" in (path / "config.toml").read_text()


def test_a_strategy_of_another_algorithm_is_refused() -> None:
    with pytest.raises(UsageError, match="strategy is not an option of cma"):
        configure("CartPole-v1", {"strategy": "pgpe"}, algo="cma")


OF_OWN = "strategy pgpe is an algorithm with options of its own; use --algo pgpe and leave out "


@pytest.mark.parametrize(
    ("options", "request_", "message"),
    [
        ({"strategy": "pgpe"}, {"algo": "es"}, OF_OWN + "strategy$"),
        ({"strategy": "pgpe"}, {"algo": "es", "preset": "cartpole/es"}, OF_OWN + "strategy, the preset$"),
        ({"strategy": "pgpe"}, {"preset": "cartpole/es"}, "the algorithm is pgpe; leave out strategy or the preset$"),
        (
            {"lr": 0.1},
            {"config": {"algo": "es", "strategy": "pgpe", "sigma_decay": 1.0, "sigma": 0.1, "antithetic": True}},
            OF_OWN + "strategy, sigma_decay, antithetic$",
        ),
    ],
)
def test_what_is_refused_of_a_strategy_that_is_an_algorithm_names_all_that_is_in_its_way(
    options: dict[str, Any], request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        configure("CartPole-v1", options, **request_)


def test_the_preset_file_of_a_former_sweep_of_another_strategy_names_what_to_leave_out(tmp_path: Path) -> None:
    preset = tmp_path / "best.toml"
    options = 'strategy = "pgpe"\nsigma = 0.1\nsigma_decay = 0.9\n'
    preset.write_text(f'env = "CartPole-v1"\nalgo = "es"\nabout = "found"\n[options]\n{options}')
    for algo in (None, "pgpe"):
        with pytest.raises(UsageError, match=f"{OF_OWN}strategy, sigma_decay$"):
            configure("CartPole-v1", {}, algo=algo, preset=str(preset))


def test_an_error_that_a_preset_shares_does_not_claim_to_go_without_it() -> None:
    with pytest.raises(UsageError) as refused:
        configure("HalfCheetah-v5", {"top_directions": 500})
    assert "(with preset halfcheetah/ars" in str(refused.value)
    assert "turns it off" not in str(refused.value)
