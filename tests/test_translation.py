"""Other systems' keys in --config and on the command line: translated with a notice, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import esker
from esker.cli import main
from esker.runs.request import Request, configure


def ask(
    env: str | None, config: dict[str, Any] | None = None, preset: str | None = None, algo: str | None = None, **options: Any
) -> Request:
    return configure(env, options, config=config, preset=preset, algo=algo)


# RLlib


def test_an_l2_coefficient_is_divided_by_the_sigma_that_the_run_will_have() -> None:
    l2 = {"l2_coeff": 0.005}
    assert ask("CartPole-v1", l2).config.weight_decay == pytest.approx(0.25)
    assert ask("CartPole-v1", l2, sigma=0.1).config.weight_decay == pytest.approx(0.05)
    assert ask("CartPole-v1", l2 | {"noise_stdev": 0.05}, sigma=0.1).config.weight_decay == pytest.approx(0.05)
    assert ask("CartPole-v1", l2 | {"noise_stdev": 0.05}).config.weight_decay == pytest.approx(0.1)
    preset = ask("LunarLander-v3", l2, preset="auto")
    assert preset.config.weight_decay == pytest.approx(0.005 / preset.config.sigma)


def test_the_share_of_evaluations_is_of_the_population_that_the_run_will_have() -> None:
    shares = {"eval_prob": 0.03, "episodes_per_batch": 1000}
    assert ask("CartPole-v1", shares).config.center_episodes == 30
    assert ask("CartPole-v1", shares, population=100).config.center_episodes == 3


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"l2_coeff": "x"}, "l2_coeff is 'x'; expected a number"),
        ({"l2_coeff": None}, "l2_coeff is None; expected a number"),
        ({"l2_coeff": True}, "l2_coeff is True; expected a number"),
        ({"eval_prob": "x"}, "eval_prob is 'x'; expected a number"),
        ({"eval_prob": 2}, "eval_prob is 2; expected a number at least 0 and at most 1"),
        ({"observation_filter": ["a"]}, r"observation_filter is \['a'\]; expected one of"),
        ({"noise_stdev": 0, "l2_coeff": 0.1}, "sigma is 0; expected a number above 0"),
        ({"algorithm": ["x"]}, r"algorithm is \['x'\]; AES-RL's configuration knows"),
        ({"algo": 3}, "algo is 3; expected text"),
        ({"env": ["CartPole-v1"]}, r"env is \['CartPole-v1'\]; expected text"),
        ({"run": "PPO"}, "run is 'PPO'; of RLlib's algorithms esker knows ES"),
        ({"model": 3, "stepsize": 0.01}, "model is 3; expected RLlib's object"),
        ({"return_proc_mode": "raw"}, "return_proc_mode is 'raw'; RLlib has only centered_rank"),
        (
            {"episodes_per_batch": 1000, "population": 40},
            "episodes_per_batch is 1000 and population is 40, which mean the same",
        ),
        ({"npop": 0, "std": 0.1}, "npop is 0; expected a number at least 2"),
        ({"std": "wide"}, "std is 'wide'; expected a number above 0"),
        (
            {"env": "CartPole-v1", "env_name": "Pendulum-v1"},
            "env is 'CartPole-v1' and env_name is 'Pendulum-v1'; give one of them",
        ),
    ],
)
def test_wrong_values_are_refused_in_one_line(config: dict[str, Any], said: str) -> None:
    with pytest.raises(esker.UsageError, match=said) as caught:
        ask("CartPole-v1", config)
    assert "\n" not in str(caught.value)


RLLIB_DEFAULTS = {
    "l2_coeff": 0.005,
    "noise_stdev": 0.02,
    "episodes_per_batch": 1000,
    "eval_prob": 0.03,
    "return_proc_mode": "centered_rank",
    "stepsize": 0.01,
    "noise_size": 250000000,
    "report_length": 10,
    "num_workers": 10,
    "train_batch_size": 10000,
    "observation_filter": "MeanStdFilter",
    "action_noise_std": 0.01,
    "env": None,
    "env_config": {},
    "horizon": None,
    "model": {"fcnet_hiddens": [256, 256], "fcnet_activation": "tanh", "use_lstm": False, "conv_filters": None},
    "gamma": 0.99,
    "lr": 0.0001,
    "num_gpus": 0,
    "num_envs_per_worker": 1,
    "sample_batch_size": 200,
    "batch_mode": "truncate_episodes",
    "callbacks": {},
    "log_level": "WARN",
    "multiagent": {"policies": {}},
    "optimizer": {},
    "tf_session_args": {"device_count": {"CPU": 1}},
    "seed": None,
    "replay_sequence_length": 1,
    "_use_trajectory_view_api": True,
}


def test_a_dump_of_rllibs_defaults_is_accepted_and_what_has_no_effect_is_named() -> None:
    request = ask("Humanoid-v1", RLLIB_DEFAULTS)
    config = request.config
    assert (config.population, config.min_steps, config.workers, config.center_episodes) == (1000, 10000, 10, 30)
    assert (config.sigma, config.lr, config.weight_decay, config.action_noise) == (0.02, 0.01, pytest.approx(0.25), 0.01)
    assert (config.hidden, config.activation, config.table_size) == ((256, 256), "tanh", 250_000_000)
    text = "\n".join(request.notices)
    assert "gamma, log_level, lr, " in text
    assert "model.use_lstm" in text
    assert "no effect on its ES, and none here" in text


def test_rllibs_action_noise_has_no_effect_on_discrete_actions_and_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = {"population": 4, "generations": 1, "workers": 0, "max_episode_steps": 3, "noise": "counter"}
    file = json.dumps(small | {"action_noise_std": 0.01})
    assert main(["train", "CartPole-v1", "--preset", "none", "--config", file]) == 0
    assert "note: RLlib's action_noise_std has no effect here: it is for continuous (Box) actions" in capsys.readouterr().out


def test_the_newer_name_of_rllibs_workers_counts() -> None:
    assert ask("CartPole-v1", {"num_rollout_workers": 3}).config.workers == 3


def test_other_keys_of_rllib_become_options() -> None:
    request = ask("CartPole-v1", {"env_config": {"sutton_barto_reward": True}, "horizon": 30, "stepsize": 0.02})
    assert request.config.env_kwargs == {"sutton_barto_reward": True}
    assert (request.config.max_episode_steps, request.config.lr) == (30, 0.02)
    concurrent = ask("CartPole-v1", {"observation_filter": "ConcurrentMeanStdFilter"})
    assert concurrent.config.normalize_observations is True


def test_an_odd_number_of_episodes_is_a_minimum() -> None:
    request = ask("CartPole-v1", {"episodes_per_batch": 31})
    assert request.config.population == 32
    assert "episodes come in pairs: population = 32" in request.notices
    assert ask("CartPole-v1", {"episodes_per_batch": 31}, antithetic=False).config.population == 31


# Environment and algorithm in a file


def test_environment_and_algorithm_of_a_file_count() -> None:
    request = ask(None, {"env": "Pendulum-v1", "algo": "td3"})
    assert (request.config.env, request.config.algo) == ("Pendulum-v1", "td3")
    other = ask("MountainCarContinuous-v0", {"env": "Pendulum-v1", "algo": "td3"})
    assert (other.config.env, other.config.algo) == ("MountainCarContinuous-v0", "td3")
    assert any("Pendulum-v1" in notice and "is overridden" in notice for notice in other.notices)
    flag = ask("Pendulum-v1", {"algo": "td3"}, algo="es")
    assert flag.config.algo == "es"
    assert any("td3" in notice and "is overridden" in notice for notice in flag.notices)


# AES-RL


def test_what_a_file_of_the_repository_leaves_out_is_the_repositorys() -> None:
    file = {"algorithm": "AES-RL", "env_name": "HalfCheetah-v2", "aesrl_mean_update_param": 2000, "aesrl_rl_ratio": 0.5}
    request = ask(None, file, preset="auto")
    config = request.config
    assert (config.workers, config.mean_episodes, config.batch_size, config.hidden) == (1, 5, 100, (400, 300))
    told = next(notice for notice in request.notices if notice.startswith("not in the file"))
    assert "workers = 1" in told
    assert "mean_episodes = 5" in told
    assert "lr" not in told.replace("rl_ratio", "")  # the preset has the same
    assert ask(None, file | {"num_actor_worker": 5}, preset="auto", mean_episodes=1).config.mean_episodes == 1
    assert ask(None, {"algorithm": "CEM-RL", "env_name": "HalfCheetah-v2"}, preset="auto").config.damp_tau == 0.90


def test_keys_of_the_repository_that_are_not_about_training_are_understood() -> None:
    file = {"algorithm": "TD3", "env_name": "Pendulum-v1", "seed": -1, "visualize": False, "debug": True}
    request = ask(None, file | {"actor_network_scheme": "TD3", "redis_password": "12345"})
    assert request.config.seed == 0
    text = "\n".join(request.notices)
    for name in ("visualize", "debug", "actor_network_scheme", "redis_password", "seed = -1"):
        assert name in text, name
    cluster = ask(None, file | {"ray_address": "10.0.0.1", "ray_port": 12345}).config
    assert (cluster.engine, cluster.address) == ("ray", "10.0.0.1:12345")


def test_names_that_other_libraries_share_are_theirs_where_nothing_else_is_aesrls() -> None:
    assert ask("CartPole-v1", {"population_size": 30, "sigma_init": 0.3}).config.sigma == 0.3
    config = ask("Pendulum-v1", {"algorithm": "CEM-RL", "population_size": 30, "sigma_init": 0.3}).config
    assert (config.population, config.var_init) == (30, 0.3)


# A rule and its parameter


@pytest.mark.parametrize(
    ("preset", "rule", "param"),
    [("halfcheetah/aes-rl", "baseline-absolute", -2000.0), ("auto", "baseline-absolute", -2000.0)],
)
def test_a_rule_takes_its_own_published_parameter_where_a_preset_has_anothers(preset: str, rule: str, param: float) -> None:
    request = ask("HalfCheetah-v5", preset=preset, algo="aes-rl", mean_update=rule)
    assert (request.config.mean_update, request.config.mean_update_param) == (rule, param)
    assert f"mean_update_param = {param:g}, as published for {rule} ({-param:g} is for another rule)" in request.notices
    own = ask("HalfCheetah-v5", preset=preset, algo="aes-rl", mean_update=rule, mean_update_param=abs(param) / 2)
    assert own.config.mean_update_param == abs(param) / 2


# es-torch


def test_es_torchs_keys_give_its_update() -> None:
    request = ask("HalfCheetah-v5", {"npop": 30, "std": 0.025, "lr": 0.04, "weight_decay": 0.0025, "bs": 50})
    config = request.config
    assert (config.population, config.sigma, config.optimizer, config.slots) == (30, 0.025, "sgd", 50)
    assert (config.lr, config.weight_decay) == (pytest.approx(0.001), pytest.approx(0.1))
    wider = ask("HalfCheetah-v5", {"npop": 30, "std": 0.025, "lr": 0.04, "weight_decay": 0.0025}, sigma=0.05).config
    assert (wider.sigma, wider.lr, wider.weight_decay) == (0.05, pytest.approx(0.002), pytest.approx(0.05))


def test_es_torchs_keys_and_raw_observations_are_es_torch_in_everything() -> None:
    given = {"npop": 100, "std": 0.025, "lr": 0.04, "weight_decay": 0.0025}
    config = ask("HalfCheetah-v5", given, preset="none", normalize_observations=False).config
    assert (config.sigma, config.lr, config.optimizer) == (0.025, pytest.approx(0.001), "sgd")
    assert config.weight_decay == pytest.approx(0.1)
    assert (config.hidden, config.activation, config.initializer, config.shaping) == (
        (64, 64),
        "tanh",
        "xavier",
        "centered_rank",
    )
    assert (config.antithetic, config.normalize_observations, config.action_noise) == (True, False, 0.0)


# On the command line

SMALL = [
    "--preset",
    "none",
    "--population",
    "4",
    "--generations",
    "1",
    "--center-episodes",
    "1",
    "--hidden",
    "4",
    "--workers",
    "0",
]


def test_rllibs_command_line_is_understood(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--env=CartPole-v0", "--run=ES", "--noise", "counter", "--run-dir", "r", *SMALL]
    assert main(["train", *flags, '--config={"stepsize": 0.02}']) == 0
    assert "CartPole-v1" in capsys.readouterr().out
    assert main(["train", *flags[:2], "--redis-address=127.0.0.1:1", *SMALL[:-2]]) == 2
    assert "no Ray cluster answers at 127.0.0.1:1" in capsys.readouterr().err


def test_aesrls_command_line_is_understood(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "aesrl.json"
    file.write_text(json.dumps({"algorithm": "AES-RL", "env_name": "Pendulum-v1", "hidden": [8], "initial_steps": 30}))
    flags = "--aesrl_mean_update fixed-linear --aesrl_var_update adaptive --aesrl_mean_update_param 50 --num_actor_worker 1"
    flags += " --num_critic_worker 1 --batch_size 8 --preset none --results-per-generation 1 --generations 1 --run-dir r"
    assert main(["train", "--config", str(file), *flags.split(), "--max-episode-steps", "10"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "AES-RL's aesrl_mean_update = fixed-linear is mean_update = fixed-linear" in out
    assert "AES-RL's num_actor_worker = 1 is workers = 1" in out
    assert main(["train", "--config", str(file), "--ray_address", "127.0.0.1", "--ray_port", "1"]) == 2
    assert capsys.readouterr().err.startswith("esker: error: ")


# Sweeps


def test_a_sweep_takes_the_same_translations(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = {"algorithm": "AES-RL", "env_name": "Pendulum-v1", "aesrl_rl_ratio": 0.5, "hidden": [8], "initial_steps": 20}
    small = ["--preset", "none", "--max-episode-steps", "10", "--results-per-generation", "2", "--batch-size", "8"]
    flags = ["--space", "mean_update_param=10,50", "--trials", "1", "--training-steps", "60", "--deterministic"]
    flags += ["--sweep-dir", str(tmp_path), "--config", json.dumps(file), "--workers", "0"]
    assert main(["sweep", *flags, *small]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Pendulum-v1 with aes-rl" in out
    assert "AES-RL's aesrl_rl_ratio = 0.5 is rl_ratio = 0.5" in out


def test_a_sweep_of_sigma_refuses_an_l2_coefficient_that_depends_on_it(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--space", "sigma=0.01..0.1:log", "--sweep-dir", str(tmp_path), "--config", '{"l2_coeff": 0.005}']
    assert main(["sweep", "CartPole-v1", *flags]) == 2
    assert "weight_decay is computed from sigma, which is swept" in capsys.readouterr().err
