"""Wrong requests of the algorithms with gradients, AES-RL's files, and the presets."""

from __future__ import annotations

import json

import pytest

from esker.algorithms import registry
from esker.config.build import build
from esker.config.translate import names_in
from esker.config.translate import translate as translate_keys
from esker.errors import UsageError
from esker.presets import load_all
from esker.runs.request import configure

AES = {"mean_update_param": 5.0}
HYBRIDS = [name for name in registry.BUILT_IN if not registry.find(name).commits_facts]


def translate(values):
    names = names_in(values)
    return translate_keys(names.values, names.algo or "es", registry.options_of(names.algo or "es"), {}, {})


@pytest.mark.parametrize(
    ("algo", "options", "words"),
    [
        ("aes-rl", {}, "needs mean_update_param"),
        ("aes-rl", AES | {"var_init": 1e-6}, "var_init is 1e-06, below var_floor, 1e-05; lower --var-floor, too"),
        ("aes-rl", {"mean_update_param": 0}, "mean_update_param is 0; mean_update baseline-relative needs a scale above 0"),
        ("aes-rl", {"mean_update_param": -1, "mean_update": "fixed-sigmoid"}, "needs a scale above 0"),
        ("aes-rl", AES | {"var_update": "fixed"}, "var_update fixed needs fixed_var_n, as --fixed-var-n 10"),
        ("aes-rl", AES | {"fixed_var_n": 10}, "fixed_var_n is for --var-update fixed"),
        ("aes-rl", AES | {"negative_ratio": 0.5}, "negative_ratio is for --mean-update fixed-linear"),
        ("aes-rl", AES | {"rl_ratio": 1.5}, "rl_ratio is 1.5; expected a share from 0 to 1"),
        ("aes-rl", AES | {"rl_ratio": -0.1}, "rl_ratio is -0.1"),
        ("aes-rl", AES | {"critics": 2}, "critics is 2, and this option was removed; there is one critic"),
        ("aes-rl", AES | {"deterministic": True, "workers": 3}, "--deterministic means one actor"),
        ("aes-rl", AES | {"mean_update": "linear"}, "mean_update is 'linear'; expected one of fixed-linear"),
        ("p-cem-rl", {"actors": 3, "workers": 2}, "which mean the same"),
        ("p-cem-rl", {"parallel_critic": True, "workers": 0}, "--parallel-critic needs a process for the critic"),
        ("cem-rl", {"population": 9}, "use --population 10 or --no-antithetic"),
        ("cem-rl", {"rl_population": 11}, "rl_population is 11; expected at most the population, 10"),
        ("td3", {"device": "cuda:99"}, "device is 'cuda:99'"),
        ("td3", {"device": "abacus"}, "expected cpu, cuda or cuda:N"),
        ("td3", {"discount": 1.5}, "discount is 1.5"),
        ("td3", {"goal": 1.0}, "goal is 1, given without patience"),
        ("td3", {"sigma": 0.1}, "sigma is not an option of td3; it belongs to es"),
        ("es", {"rl_ratio": 0.1}, "rl_ratio is not an option of es; it belongs to acem-rl, one-plus-one, aes-rl"),
        ("td4", {}, "unknown algorithm 'td4'; did you mean 'td3'"),
    ],
)
def test_wrong_options_are_refused_in_one_line(algo, options, words):
    with pytest.raises(UsageError) as refused:
        configure("Pendulum-v1", options, algo=algo)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("algo", HYBRIDS)
def test_discrete_actions_are_refused_with_the_algorithm_that_fits(algo, cli):
    extra = ["--mean-update-param", "1"] if algo == "aes-rl" else []
    done = cli("train", "CartPole-v1", "--algo", algo, *extra)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        f"esker: error: {algo} needs continuous (Box) actions, and CartPole-v1 has Discrete(2); use --algo es"
    )


def test_the_command_line_trains_resumes_and_evaluates(cli):
    small = "--hidden 8 --batch-size 8 --initial-steps 200 --generation-steps 200 --center-episodes 1 --generations 2"
    assert cli("train", "Pendulum-v1", "--algo", "td3", *small.split(), "--run-dir", "r").returncode == 0
    resumed = cli("resume", "r", "--generations", "3")
    assert resumed.returncode == 0
    assert "resuming at generation 2" in resumed.stdout
    summary = json.loads(cli("eval", "r", "--episodes", "2", "--json", "--workers", "0").stdout)
    assert summary["episodes"] == 2
    assert cli("eval", "r", "--checkpoint", "9").stderr.strip().endswith("(--keep sets how many are kept)")


# AES-RL's configuration files


FILE = {
    "env_name": "HalfCheetah-v2",
    "algorithm": "AES-RL",
    "num_actor_worker": 3,
    "num_critic_worker": 1,
    "hidden": [400, 300],
    "lr": 1e-3,
    "batch_size": 256,
    "replay_size": 2e5,
    "initial_steps": 5000,
    "max_timestep": 1e6,
    "sigma_init": 2e-3,
    "seed": 4,
    "expl_noise": 0.1,
    "population_size": 10,
    "aesrl_mean_update": "fixed-linear",
    "aesrl_mean_update_param": 1500,
    "aesrl_var_update": "fixed",
    "aesrl_fixed_var_n": 20,
    "aesrl_rl_ratio": 0.3,
    "aesrl_rl_k": 40,
    "aesrl_negative_ratio": 0.2,
    "aesrl_sigma_limit": 1e-6,
    "aesrl_critic_batch": 500,
    "cemrl_tau": 0.9,
}


def test_a_file_of_aesrl_gives_the_run_it_describes():
    asked = configure(None, {}, config=FILE)
    config, environment, notices = asked.config, asked.environment, asked.notices
    assert (config.algo, environment.name) == ("aes-rl", "HalfCheetah-v5")
    assert (config.workers, config.seed, config.training_steps) == (3, 4, 1_000_000)
    assert (config.var_init, config.var_floor, config.critic_chunk, config.replay_size) == (2e-3, 1e-6, 500, 200_000)
    assert (config.mean_update, config.mean_update_param, config.negative_ratio) == ("fixed-linear", 1500, 0.2)
    assert (config.var_update, config.fixed_var_n, config.rl_ratio, config.rl_k) == ("fixed", 20, 0.3, 40)
    assert "environment HalfCheetah-v2 is translated to HalfCheetah-v5, its newest version" in notices
    assert "AES-RL's sigma_init = 0.002 is var_init = 0.002" in notices
    assert "AES-RL's expl_noise = 0.1 is not used: aes-rl has no such option" in notices


@pytest.mark.parametrize(
    ("name", "algo"),
    [
        ("TD3", "td3"),
        ("CEM-RL", "cem-rl"),
        ("P-CEM-RL", "p-cem-rl"),
        ("(1+1)-ES", "one-plus-one"),
        ("ACEM-RL", "acem-rl"),
    ],
)
def test_every_algorithm_of_aesrl_takes_every_key(name, algo):
    config = configure("HalfCheetah-v5", {}, config=FILE | {"algorithm": name}).config
    assert (config.algo, config.seed) == (algo, 4)


def test_cem_keys_become_their_options_and_the_used_rate_wins():
    done = translate({"algorithm": "CEM-RL", "cemrl_tau": 0.9, "cemrl_damp_tau": 0.95, "cemrl_no_antithetic": True})
    assert done.values == {"damp_tau": 0.9, "antithetic": False}
    assert "AES-RL's cemrl_damp_tau = 0.95 is not used: the repository reads cemrl_tau instead" in done.notices


def test_a_request_goes_before_the_file():
    asked = configure("Hopper-v5", {"seed": 9, "mean_update_param": 600}, config=FILE)
    config, environment, notices = asked.config, asked.environment, asked.notices
    assert (environment.name, config.seed, config.mean_update_param) == ("Hopper-v5", 9, 600)
    assert any("is overridden" in notice for notice in notices)


def test_an_algorithm_that_aesrl_does_not_have_is_refused():
    with pytest.raises(UsageError, match="algorithm is 'PPO'"):
        translate({"algorithm": "PPO"})


def test_other_configurations_stay_as_they_are():
    assert translate({"population": 10, "lr": 0.1}).values == {"population": 10, "lr": 0.1}


# presets


HYBRID_PRESETS = [preset for preset in load_all().values() if preset.algo in HYBRIDS]


SCALES = [("HalfCheetah", 2000), ("Hopper", 600), ("Walker2d", 800), ("Ant", 960), ("Humanoid", 960)]


@pytest.mark.parametrize(("env", "scale"), SCALES)
def test_every_environment_has_every_algorithm_with_the_published_settings(env, scale):
    for algo in HYBRIDS:
        config = configure(f"{env}-v5", {}, algo=algo).config
        small = algo == "td3" or (env, algo) == ("Humanoid", "aes-rl")
        assert (config.hidden, config.lr) == (((256, 256), 0.0003) if small else ((400, 300), 0.001)), algo
        assert config.training_limit == 1_000_000
    assert configure(f"{env}-v5", {}, algo="aes-rl").config.mean_update_param == scale
    assert configure(f"{env}-v5", {"mean_update": "baseline-absolute"}, algo="aes-rl").config.mean_update_param == -scale


@pytest.mark.parametrize("preset", HYBRID_PRESETS, ids=lambda preset: preset.name)
def test_every_preset_is_a_valid_configuration(preset):
    config = build(registry.options_of(preset.algo), preset.options)
    assert config.training_steps == (10_000 if preset.env == "Pendulum-v1" else 1_000_000)


def test_a_preset_chooses_its_algorithm():
    asked = configure("HalfCheetah-v5", {}, preset="halfcheetah/aes-rl")
    config, notices = asked.config, asked.notices
    assert (config.algo, config.mean_update, config.mean_update_param) == ("aes-rl", "baseline-relative", 2000)
    assert "algorithm aes-rl, as the preset says" in notices
    with pytest.raises(UsageError, match="is for aes-rl, and the algorithm is td3"):
        configure("HalfCheetah-v5", {}, algo="td3", preset="halfcheetah/aes-rl")
