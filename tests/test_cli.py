"""The command line: wrong requests get status 2 and one line; right ones do what their help says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import HERE

import esker
from esker.algorithms import registry
from esker.cli import main
from esker.config.options import ESConfig

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = ["--preset", "none", "--population", "4", "--generations", "2", "--center-episodes", "1", "--hidden", "4"]
SMALL += ["--table-size", "10000", "--workers", "0"]


@pytest.fixture
def ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run a command inside this process, in an empty folder: status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        status = main([str(argument) for argument in arguments])
        return (status, *capsys.readouterr())

    return run


Ask = Callable[..., tuple[int, str, str]]

WRONG = [
    (["train", "CartPoll-v1"], "unknown environment 'CartPoll-v1'; did you mean 'CartPole-v1'"),
    (["train", "HalfCheeta-v5"], "did you mean 'HalfCheetah-v5'"),
    (["train", "no_such_module:make"], "cannot import 'no_such_module'"),
    (["train", "worlds:make_coridor"], "did you mean 'make_corridor'"),
    (["train", "worlds:NOT_CALLABLE"], "worlds:NOT_CALLABLE"),
    (
        ["train", "CartPole-v1", "--population", "5"],
        "antithetic sampling needs an even number; use --population 6 or --no-antithetic",
    ),
    (["train", "CartPole-v1", "--sigma", "-0.1"], "sigma is -0.1; expected a number above 0"),
    (["train", "CartPole-v1", "--sigma", "big"], "sigma is 'big'; expected a number"),
    (["train", "CartPole-v1", "--population", "4.5"], "population is '4.5'; expected a whole number"),
    (
        ["train", "CartPole-v1", "--preset", "none", "--goal", "475"],
        "goal is 475, given without patience; give both, as --goal 475 --patience 5",
    ),
    (["train", "Acrobot-v1", "--preset", "none", "--patience", "3"], "patience is 3, given without goal"),
    (["train", "CartPole-v1", "--shaping", "rank"], "shaping is 'rank'; expected one of centered_rank"),
    (["train", "CartPole-v1", "--popluation", "8"], "unknown argument '--popluation'; did you mean '--population'"),
    (["train", "CartPole-v1", "--sigmaa", "8"], "unknown argument '--sigmaa'; did you mean '--sigma'"),
    (["train", "CartPole-v1", "--algo", "esx"], "unknown algorithm 'esx'; did you mean 'es'"),
    (["train", "CartPole-v1", "--preset", "cartpol/es"], "unknown preset 'cartpol/es'; did you mean 'cartpole/es'"),
    (["train", "CartPole-v1", "--config", '{"popultion": 8}'], "unknown option 'popultion'; did you mean 'population'"),
    (["train", "CartPole-v1", "--config", "{nonsense"], "the JSON given to --config cannot be read"),
    (["train", "CartPole-v1", "--config", "nowhere.toml"], "'nowhere.toml' does not exist"),
    (["train", "CartPole-v1", "--config", '{"observation_filter": "x"}'], "expected one of MeanStdFilter"),
    (["train", "CartPole-v1", "--momentum", "0.9"], "adam has none"),
    (["train", "CartPole-v1", "--rank", "2"], "it is for --noise low-rank"),
    (["train", "CartPole-v1", "--bins", "5"], "bins is for --action-mode binned"),
    (["train", "CartPole-v1", "--action-mode", "tanh"], "is for continuous (Box) actions"),
    (["train", "CartPole-v1", "--action-noise", "0.1"], "it is for continuous (Box) actions"),
    (["train", "worlds:Spaces", "--env-kwargs", '{"action": "text"}'], "not supported"),
    (["train", "CartPole-v1", "--env-kwargs", '{"wind": 3}'], "does not take {'wind': 3}"),
    (["train", "CartPole-v1", "--env-kwargs", "3"], "env_kwargs is '3'; expected a JSON object"),
    (
        ["train", "CartPole-v1", "--wrapper", "worlds:nothing"],
        "wrapper 'worlds:nothing': 'worlds' has no callable 'nothing'",
    ),
    (["train", "CartPole-v1", "--table-size", "100"], "must hold at least twice as many normals"),
    (["train", "CartPole-v1", "--run-dir", "/dev/null/run"], "cannot be written: Not a directory"),
    (["train", "CartPole-v1", "--seeds", "4..0"], "an empty range"),
    (["train", "CartPole-v1", "--seeds", "all"], "expected a range such as 0..4"),
    (["train", "CartPole-v1", "--seeds", "0..1", "--seed", "2"], "exclude each other"),
    (["train", "CartPole-v1", "--seed", "-1"], "seed is -1; expected a number at least 0"),
    (["train"], "required: ENV"),
    (["trane"], "trane"),
    (["resume", "nowhere"], "'nowhere' does not exist; `esker train` makes one"),
    (["resume", "."], "is not a run folder (it has no config.toml)"),
    (["eval", "nowhere"], "'nowhere' does not exist"),
    (["check", "Nonsense-v0"], "unknown environment 'Nonsense-v0'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[" ".join(a[-2:]) for a, _ in WRONG])
def test_a_wrong_request_gets_status_2_and_one_line(ask: Ask, arguments: list[str], message: str) -> None:
    status, output, errors = ask(*arguments)
    assert status == 2
    assert message in errors
    assert errors.count("\n") == 1
    assert output == ""


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 10**400, "inf", "1e999"])
def test_a_whole_number_that_is_not_finite_is_refused(value: object) -> None:
    from esker.errors import UsageError
    from esker.runs.request import configure

    with pytest.raises(UsageError, match=r"^seed is .*; expected a whole number"):
        configure("CartPole-v1", {}, config={"seed": value})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from([n for n in ESConfig.__dataclass_fields__ if n not in ("env", "algo", "run_dir")])
    | st.text(max_size=8),
    value=st.none() | st.booleans() | st.floats() | st.integers(-3, 0) | st.text(max_size=6) | st.lists(st.text(max_size=3)),
)
def test_any_malformed_configuration_gets_status_2_and_one_line(ask: Ask, name: str, value: object) -> None:
    from esker.errors import UsageError
    from esker.runs.request import configure

    try:
        configure("CartPole-v1", {}, config={name: value})
    except UsageError:
        status, _, errors = ask("train", "CartPole-v1", "--config", json.dumps({name: value}))
        assert status == 2
        assert errors.count("\n") == 1


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "mujoco.py").write_text("raise ImportError('no mujoco here')")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{HERE.parent}"}
    command = [sys.executable, "-m", "esker", "train", "Hopper-v5"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'esker[mujoco]'" in done.stderr


def test_a_quiet_run_of_a_mujoco_world_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "HalfCheetah-v5", "--quiet", "--run-dir", "r", "--max-episode-steps", "5", *SMALL]) == 0
    assert capfd.readouterr() == ("", "")


def test_a_used_run_folder_is_refused_with_the_command_that_continues_it(ask: Ask) -> None:
    assert ask("train", "CartPole-v1", "--run-dir", "r", "--quiet", *SMALL)[0] == 0
    status, _, errors = ask("train", "CartPole-v1", "--run-dir", "r", *SMALL)
    assert status == 2
    assert "esker resume r" in errors


def test_a_folder_with_other_things_in_it_is_refused(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "thesis.tex").touch()
    status, _, errors = ask("train", "CartPole-v1", "--run-dir", "r", *SMALL)
    assert status == 2
    assert "is not empty; choose another --run-dir" in errors


def test_what_a_run_computes_cannot_be_changed_on_resume(ask: Ask) -> None:
    ask("train", "CartPole-v1", "--run-dir", "r", "--quiet", *SMALL)
    with pytest.raises(esker.UsageError, match="sigma cannot be changed on resume"):
        esker.resume("r", sigma=0.5)
    status, _, errors = ask("resume", "r", "--sigma", "0.5")
    assert status == 2
    assert "--sigma" in errors


def test_flags_beat_the_file_which_beats_the_preset_which_beats_the_defaults(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("sigma = 0.3\nlr = 0.4\n")
    assert (
        ask("train", "CartPole-v1", "--config", "c.toml", "--lr", 0.5, "--generations", 1, "--workers", 0, "--run-dir", "r")[
            0
        ]
        == 0
    )
    config = tomllib.loads((tmp_path / "r" / "config.toml").read_text())
    assert (config["lr"], config["sigma"], config["center_episodes"]) == (0.5, 0.3, 100)  # flag, file, preset
    assert config["activation"] == ESConfig().activation


def test_the_preset_of_a_known_environment_is_used_and_reported(ask: Ask) -> None:
    _, output, _ = ask("train", "CartPole-v1", "--generations", 1, "--workers", 0, "--run-dir", "r")
    assert "preset cartpole/es" in output
    _, output, _ = ask("train", "CartPole-v1", "--preset", "none", "--generations", 1, "--workers", 0, "--run-dir", "s")
    assert "preset" not in output


def test_rllib_keys_are_translated_with_a_notice(ask: Ask, tmp_path: Path) -> None:
    keys = {"num_workers": 0, "episodes_per_batch": 4, "train_batch_size": 50, "noise_stdev": 0.05, "stepsize": 0.03}
    keys |= {"l2_coeff": 0.005, "eval_prob": 0.5, "noise_size": 20000, "observation_filter": "NoFilter", "report_length": 10}
    status, output, _ = ask(
        "train", "CartPole-v1", "--config", json.dumps(keys), "--generations", 1, "--hidden", 4, "--run-dir", "r"
    )
    assert status == 0
    config = tomllib.loads((tmp_path / "r" / "config.toml").read_text())
    expected = {"workers": 0, "population": 4, "min_steps": 50, "sigma": 0.05, "lr": 0.03, "table_size": 20000}
    expected |= {"weight_decay": 0.005 / 0.05, "center_episodes": 2, "normalize_observations": False}
    assert {name: config[name] for name in expected} == pytest.approx(expected)
    assert all(name in output for name in keys)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CartPole-v0", "CartPole-v1"),
        ("HalfCheetah-v2", "HalfCheetah-v5"),
        ("Humanoid-v1", "Humanoid-v5"),
        ("LunarLander-v2", "LunarLander-v3"),
    ],
)
def test_old_ids_become_the_newest_version_with_a_notice(old: str, new: str) -> None:
    from esker.worlds.environments import resolve

    environment, notices = resolve(old)
    assert environment.name == new
    assert notices == [f"environment {old} is translated to {new}, its newest version"]


def test_a_maintained_older_mujoco_version_is_taken_at_its_word() -> None:
    from esker.worlds.environments import resolve

    assert resolve("HalfCheetah-v4")[0].name == "HalfCheetah-v4"


def test_several_seeds_train_in_one_command(ask: Ask, tmp_path: Path) -> None:
    status, output, _ = ask("train", "CartPole-v1", "--seeds", "3..4", "--run-dir", "r", *SMALL)
    assert status == 0
    assert [tomllib.loads((tmp_path / "r" / f"s{s}" / "config.toml").read_text())["seed"] for s in (3, 4)] == [3, 4]
    assert "2 seeds: " in output


def test_the_default_run_folder_names_environment_algorithm_and_seed(ask: Ask, tmp_path: Path) -> None:
    ask("train", "CartPole-v1", "--seed", 7, *SMALL)
    assert [path.name[:6] for path in (tmp_path / "runs" / "CartPole-v1").iterdir()] == ["es-s7-"]


def test_the_default_stop_is_stated(ask: Ask) -> None:
    _, output, _ = ask("train", "CartPole-v1", *SMALL)
    assert "stops at: 2 generations" in output


def test_eval_prints_its_json_contract_and_repeats_exactly(ask: Ask) -> None:
    ask("train", "CartPole-v1", "--run-dir", "r", "--quiet", *SMALL)
    status, first, _ = ask("eval", "r", "--episodes", 7, "--json", "--workers", 0)
    result = json.loads(first)
    assert status == 0
    assert set(result) == {"episodes", "mean", "std", "min", "max", "median", "length_mean", "checkpoint"}
    assert result["episodes"] == 7
    assert ask("eval", "r", "--episodes", 7, "--json", "--workers", 2)[1] == first
    assert ask("eval", "r", "--episodes", 7, "--json", "--seed", 1, "--workers", 0)[1] != first
    assert "median" in ask("eval", "r", "--episodes", 2, "--workers", 0)[1]


@pytest.mark.parametrize(
    ("checkpoint", "message"), [("9", "generation 9 does not exist; this run has 0 to 2"), ("x", "expected best")]
)
def test_eval_of_an_unknown_checkpoint_says_which_exist(ask: Ask, checkpoint: str, message: str) -> None:
    ask("train", "CartPole-v1", "--run-dir", "r", "--quiet", *SMALL)
    status, _, errors = ask("eval", "r", "--checkpoint", checkpoint)
    assert status == 2
    assert message in errors


def test_a_policy_loads_and_acts_without_its_environment(ask: Ask, tmp_path: Path) -> None:
    ask(
        "train",
        "worlds:Spaces",
        "--env-kwargs",
        '{"observation": "dict", "action": "box"}',
        "--run-dir",
        "r",
        "--quiet",
        *SMALL,
    )
    program = """
import esker, numpy as np
action = esker.load("r").act({"a": 1, "b": np.zeros(2, np.float32)})
print(action.shape, -1 <= action[0] <= 1, 0 <= action[1] <= 2)
"""
    environment = os.environ | {"PYTHONPATH": str(HERE.parent)}  # without the test environments
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60)
    assert done.stdout == "(2,) True True\n", done.stderr


def test_the_policy_acts_as_the_centre_did_in_training(ask: Ask, tmp_path: Path) -> None:
    import gymnasium as gym

    from esker.noise.address import Purpose, episode_seed

    ask("train", "CartPole-v1", "--run-dir", "r", "--quiet", *SMALL)
    run, env = esker.Run("r"), gym.make("CartPole-v1")
    policy, total = run.policy(0), 0.0
    observation, _ = env.reset(seed=episode_seed(0, Purpose.CENTER_EPISODE, 0, 0))
    over = False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        total, over = total + float(reward), terminated or truncated
    assert total == run.history[0]["center_return"]


def test_check_reports_spaces_exactness_speed_and_preset(ask: Ask) -> None:
    report = json.loads(ask("check", "CartPole-v1", "--json")[1])
    assert (report["observation_size"], report["network_outputs"]) == (4, 2)
    assert report["exact_on_used_instance"] is True
    assert report["preset"] == "cartpole/es"
    assert report["steps_per_second"] > 1000


def test_check_finds_out_what_is_exact_only_when_fresh(ask: Ask) -> None:
    report = json.loads(ask("check", "worlds:Fickle", "--json")[1])
    assert (report["exact_on_used_instance"], report["exact_on_fresh_instance"]) == (False, True)
    assert "--fresh-environments" in ask("check", "worlds:Fickle")[1]


def test_importing_esker_pulls_in_neither_torch_nor_gymnasium() -> None:
    program = "import sys, esker; print([m for m in ('torch', 'gymnasium', 'ray', 'mujoco', 'wandb') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_workers_of_an_mlp_never_import_torch() -> None:
    program = "import sys, esker.engines.worker, esker.tasks.episodes, esker.policies.mlp; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_simulators_say_their_warnings_at_most_once(cli: Cli) -> None:
    done = cli("train", "HalfCheetah-v5", "--max-episode-steps", 10, "--workers", 2, "--slots", 3, *SMALL[:-2])
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count("WARNING") <= 1


def test_help_teaches_every_option_with_its_default(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["train", "--help-all"])
    text = capsys.readouterr().out.replace("--[no-]", "--")
    assert stop.value.code == 0
    for name in ESConfig.__dataclass_fields__:
        if name not in ("env", "algo"):
            assert "--" + name.replace("_", "-") in text
    assert "esker train CartPole-v1" in text
    assert "(default: 0.02)" in text


@pytest.mark.parametrize("algo", registry.names())
def test_help_fits_in_two_screens(algo: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["train", "--algo", algo, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 80
