"""Sweeps: they find better options, resume where they were killed, and are shared by processes without repetition."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np
import pytest
from wandb_records import run_record

import esker
from esker.cli import main

REPOSITORY = str(Path(__file__).parent.parent)
TINY = ["--preset", "none", "--population", "6", "--hidden", "8", "--table-size", "10000", "--workers", "0"]


def sweep(folder: Path, *arguments: str) -> int:
    return main(["sweep", "CartPole-v1", "--sweep-dir", str(folder), "--name", "s", *TINY, *arguments])


def summary(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "s" / "sweep.json").read_text())


def outcomes(folder: Path) -> list[Any]:
    """What must not depend on kills and on who did the work."""
    kept = ("number", "state", "value", "params", "generation", "env_steps", "reports")
    return [[trial[name] for name in kept] for trial in summary(folder)["trials"]]


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "esker.cli", "sweep", "CartPole-v1", "--sweep-dir", str(folder), "--name", "s"]
    environment = os.environ | {"PYTHONPATH": REPOSITORY}
    return subprocess.Popen([*command, *TINY, *arguments], env=environment, stdout=PIPE, stderr=PIPE, text=True)


def test_a_sweep_finds_better_options_than_a_bad_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = {
        "preset": None,
        "quiet": True,
        "population": 16,
        "hidden": "16",
        "table_size": 100_000,
        "workers": 0,
        "generations": 15,
    }
    default = esker.train("CartPole-v1", run_dir=str(tmp_path / "bad"), lr=1e-5, sigma=1e-4, **bad)
    space = ["--space", "lr=0.00001..0.3:log", "sigma=0.0001..0.3:log"]
    flags = ["--population", "16", "--hidden", "16", "--table-size", "100000", "--generations", "15"]
    assert sweep(tmp_path, "--trials", "12", *space, *flags) == 0
    found = summary(tmp_path)
    best = found["trials"][found["best"]]
    last = np.mean([row["center_return"] for row in default.history[-5:]])
    assert best["value"] > last + 100
    assert f"best: trial {found['best']}" in capsys.readouterr().out
    assert sum(trial["state"] == "pruned" for trial in found["trials"]) >= 1
    spent = sum(trial["generation"] + 1 for trial in found["trials"])
    assert spent < 12 * 15
    assert set(found["importance"]) == {"lr", "sigma"}

    again = tmp_path / "again"  # the preset file gives the very run back
    preset = str(tmp_path / "s" / "best.toml")
    command = ["train", "CartPole-v1", "--preset", preset, "--workers", "0", "--quiet", "--run-dir", str(again)]
    assert main(command) == 0
    trial = esker.Run(tmp_path / "s" / best["run"])
    assert np.array_equal(esker.Run(again).policy("latest").parameters, trial.policy("latest").parameters)


def test_every_trial_is_an_ordinary_run(tmp_path: Path) -> None:
    assert sweep(tmp_path, "--trials", "2", "--generations", "2", "--space", "lr=0.01,0.02", "--pruner", "none") == 0
    for trial in summary(tmp_path)["trials"]:
        run = esker.resume(tmp_path / "s" / trial["run"], generations=3)
        assert len(run.history) == 3
        assert run.config.lr == trial["params"]["lr"]
        assert run.config.population == 6


@pytest.mark.parametrize(("how", "status"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_stopped_sweep_continues_to_the_very_results_of_one_that_was_not(
    tmp_path: Path, how: signal.Signals, status: int
) -> None:
    arguments = ["--trials", "3", "--generations", "30", "--space", "lr=0.001..0.1:log", "--pruner", "asha", "--quiet"]
    for attempt in range(5):  # on a busy machine a sweep may end before its signal comes
        folder = tmp_path / f"killed{attempt}"
        process = start(folder, *arguments)
        journal = folder / "s" / "trials" / "0000" / "journal.jsonl"
        deadline = time.monotonic() + 300
        while not journal.exists() or journal.read_text().count("\n") < 4:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(how)
        _, error = process.communicate(timeout=300)
        if process.returncode != 0:
            break
    assert process.returncode == status
    if how == signal.SIGINT:
        assert "interrupted; continue with: esker sweep CartPole-v1 --name s" in error
    assert sweep(folder, *arguments) == 0
    assert sweep(tmp_path / "whole", *arguments) == 0
    assert outcomes(folder) == outcomes(tmp_path / "whole")


@pytest.mark.parametrize("storage", ["journal", "sqlite"])
def test_processes_that_join_by_name_share_the_trials(tmp_path: Path, storage: str) -> None:
    arguments = ["--trials", "5", "--generations", "4", "--space", "sigma=0.01..0.1", "--pruner", "none"]
    arguments += ["--storage", storage]
    first, second = start(tmp_path, *arguments), start(tmp_path, *arguments)
    outputs = [process.communicate(timeout=300)[0] for process in (first, second)]
    assert first.returncode == second.returncode == 0
    told = [line.split()[1] for output in outputs for line in output.splitlines() if line.startswith("trial ")]
    assert sorted(told) == ["0", "1", "2", "3", "4"]  # each trial was run once, by one of them
    assert [trial["state"] for trial in summary(tmp_path)["trials"]] == ["complete"] * 5
    assert len({trial["params"]["sigma"] for trial in summary(tmp_path)["trials"]}) == 5


def test_trials_are_logged_to_wandb_as_one_group(tmp_path: Path) -> None:
    space = ["--space", "lr=0.01,0.02", "--generations", "1", "--pruner", "none", "--quiet"]
    assert sweep(tmp_path, "--trials", "2", *space, "--log", "wandb", "--wandb-mode", "offline") == 0
    import wandb

    wandb.teardown()  # its service has written everything when it has gone
    logs = (tmp_path / "s").glob("trials/*/wandb/offline-run-*/run-*.wandb")
    assert sorted((run_record(log).run_group, run_record(log).display_name) for log in logs) == [
        ("s", "s-0000"),
        ("s", "s-0001"),
    ]


def test_a_grid_tries_every_point_once_and_ends(tmp_path: Path) -> None:
    arguments = ["--sampler", "grid", "--generations", "1", "--pruner", "none", "--quiet"]
    assert sweep(tmp_path, "--space", "lr=0.01..0.1:2", "shaping=raw,normalized,centered_rank", *arguments) == 0
    points = [(trial["params"]["lr"], trial["params"]["shaping"]) for trial in summary(tmp_path)["trials"]]
    assert sorted(points) == [(lr, how) for lr in (0.01, 0.1) for how in ("centered_rank", "normalized", "raw")]


def test_a_strategy_that_is_an_algorithm_is_swept_with_its_options(tmp_path: Path) -> None:
    assert (
        sweep(tmp_path, "--strategy", "snes", "--space", "stdev_lr=0.1,0.2", "--sampler", "grid", "--generations", "2") == 0
    )
    assert [trial["params"] for trial in summary(tmp_path)["trials"]] == [{"stdev_lr": 0.1}, {"stdev_lr": 0.2}]
    assert [trial["generation"] for trial in summary(tmp_path)["trials"]] == [1, 1]


def test_a_former_sweep_of_a_strategy_that_is_an_algorithm_is_refused_before_any_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--generations", "1", "--space", "lr=0.01..0.1", "--quiet"]
    assert sweep(tmp_path, "--trials", "1", *arguments) == 0
    plan = tmp_path / "s" / "sweep.toml"
    plan.write_text(plan.read_text().replace("[options]", '[options]\nstrategy = "pgpe"'))
    capsys.readouterr()
    assert sweep(tmp_path, "--trials", "2", "--strategy", "pgpe", *arguments) == 2
    assert capsys.readouterr().err.endswith("begin a sweep with --algo pgpe under another --name\n")
    assert len(summary(tmp_path)["trials"]) == 1


def test_a_sweep_continues_to_more_trials_and_refuses_another_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--generations", "2", "--space", "lr=0.01..0.1", "--sampler", "random", "--pruner", "none", "--quiet"]
    assert sweep(tmp_path, "--trials", "1", *arguments) == 0
    assert sweep(tmp_path, "--trials", "3", *arguments) == 0
    assert [trial["number"] for trial in summary(tmp_path)["trials"]] == [0, 1, 2]
    join = ["sweep", "CartPole-v1", "--sweep-dir", str(tmp_path), "--name", "s", "--workers", "0"]
    assert main([*join, "--trials", "4", "--quiet"]) == 0  # by its name alone
    assert len(summary(tmp_path)["trials"]) == 4
    assert main([*join, "--space", "lr=0.5..0.6"]) == 2
    assert "exists with other space (lr=0.01..0.1, now lr=0.5..0.6)" in capsys.readouterr().err


def test_trials_that_fail_are_told_and_end_the_sweep_when_nothing_else_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = ["--space", "momentum=0.1..0.9", "--generations", "1"]  # adam has no momentum
    assert sweep(tmp_path, "--trials", "9", *space) == 1
    assert "3 trials in a row failed, the last one: momentum is" in capsys.readouterr().err
    assert [trial["state"] for trial in summary(tmp_path)["trials"]] == ["fail"] * 3
    assert "adam has none" in summary(tmp_path)["trials"][0]["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--space", "lrr=1..2"], "unknown option 'lrr' in the space; did you mean 'lr'?"),
        (["--space", "lr=2..1"], "an empty range"),
        (["--space", "lr=0.1..1", "--lr", "0.1"], "lr is both fixed and in the space"),
        (["--space", "lr=0.1..1", "--sampler", "grid"], "a grid needs points"),
        (["--trials", "0"], "trials is 0"),
        (["--min-budget", "600"], "min_budget is 600; expected 1 to 500 generations"),
        (["--reduction", "1"], "reduction is 1; expected at least 2"),
        (["--run-dir", "x"], "unknown argument '--run-dir'"),
        (["--algo", "ess"], "unknown algorithm 'ess'"),
        (["--space", "actions=RIGHT,LEFT"], "lists are written RIGHTxLEFT"),
        (["--space", "strategy=openai-es,pgpe"], "begin a sweep with --algo pgpe under another --name"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_is_written(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sweep(tmp_path, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_optuna_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert sweep(tmp_path, "--trials", "1") == 2
    assert "pip install 'esker[sweep]'" in capsys.readouterr().err


def test_a_sweep_of_an_algorithm_with_gradients_spends_its_training_steps(tmp_path: Path) -> None:
    """A hybrid is limited by training steps alone unless told otherwise."""
    small = ["--workers", "0", "--hidden", "8", "--training-steps", "90", "--initial-steps", "30", "--batch-size", "8"]
    command = ["sweep", "hybrid_worlds:Reach", "--algo", "td3", "--sweep-dir", str(tmp_path), "--name", "s", "--trials", "2"]
    assert main([*command, "--space", "lr=0.0001..0.01:log", *small, "--generation-steps", "30"]) == 0
    found = summary(tmp_path)
    assert len(found["trials"]) == 2
    assert tomllib.loads((tmp_path / "s" / "sweep.toml").read_text())["budget"]["unit"] == "training_steps"


def test_the_sweep_file_for_half_cheetah_runs(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    space = str(Path(REPOSITORY) / "examples" / "half_cheetah_sweep.toml")
    flags = [
        "--preset",
        "none",
        "--no-normalize-observations",
        "--space",
        space,
        "--max-episode-steps",
        "5",
        "--workers",
        "0",
    ]
    small = ["--steps", "600", "--trials", "2", "--table-size", "200000", "--center-episodes", "1"]
    assert main(["sweep", "HalfCheetah-v5", "--sweep-dir", str(tmp_path), "--name", "s", *flags, *small]) == 0
    found = summary(tmp_path)
    assert [trial["state"] for trial in found["trials"]] == ["complete", "complete"]
    assert set(found["space"]) == set(tomllib.loads(Path(space).read_text()))


def test_notices_are_printed_once_and_a_dump_of_rllib_fits_discrete_actions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.json").write_text('{"action_noise_std": 0.01}')
    more = ["--trials", "1", "--generations", "1", "--space", "lr=0.01,0.1", "--config", str(tmp_path / "c.json")]
    assert sweep(tmp_path, *more) == 0
    output = capsys.readouterr().out
    assert output.count("action_noise_std has no effect here") == 1
    assert "budget of a trial: 1 generation\n" in output
    assert [trial["state"] for trial in summary(tmp_path)["trials"]] == ["complete"]


def test_a_notice_about_the_request_is_not_repeated_by_the_first_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--training-steps", "20", "--initial-steps", "40", "--center-episodes", "1", "--trials", "1", "--workers", "1"]
    where = ["--preset", "none", "--hidden", "4", "--sweep-dir", str(tmp_path), "--space", "lr=0.001,0.01"]
    assert main(["sweep", "Pendulum-v1", "--algo", "td3", "--max-episode-steps", "10", *where, *flags]) == 0
    assert capsys.readouterr().out.count("are random play") == 1
