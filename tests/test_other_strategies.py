"""PGPE, SNES, sep-CMA-ES and CMA-ES as algorithms: exact for any workers, resumable, learning, wrong values refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import esker
from esker.cli import main

SMALL: dict[str, Any] = {"preset": None, "network": "linear", "noise": "counter", "center_episodes": 1, "quiet": True}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "pgpe": {"population": 12},
    "snes": {"population": 9},
    "sep-cma": {},
    "cma": {"active": True},
}


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_bits_do_not_depend_on_workers_or_on_a_stop(algo: str, tmp_path: Path) -> None:
    options = SMALL | ALGORITHMS[algo] | {"algo": algo}
    whole = esker.train("CartPole-v1", run_dir=str(tmp_path / "whole"), generations=5, workers=2, **options)
    esker.train("CartPole-v1", run_dir=str(tmp_path / "half"), generations=2, workers=0, **options)
    again = esker.resume(tmp_path / "half", generations=5, workers=0, quiet=True)
    ours, theirs = (run.policy("latest").parameters for run in (whole, again))
    assert (ours == theirs).all()
    assert not (ours == whole.policy(0).parameters).all()


@pytest.mark.parametrize(
    ("algo", "options"), [("pgpe", {"population": 60, "sigma": 0.3, "max_speed": 0.5}), ("cma", {"population": 24})]
)
def test_it_learns_to_balance(algo: str, options: dict[str, Any], tmp_path: Path) -> None:
    run = esker.train("CartPole-v1", algo=algo, run_dir=str(tmp_path / "run"), generations=25, **(SMALL | options))
    first, last = run.history[0]["return_mean"], run.history[-1]["return_mean"]
    assert last > 150
    assert last > 3 * first


def test_restarts_begin_again_with_a_larger_population(tmp_path: Path) -> None:
    options = SMALL | {"algo": "cma", "restarts": 2, "sigma": 1e-12, "generations": 40, "workers": 0}
    run = esker.train("Pendulum-v1", run_dir=str(tmp_path / "run"), max_episode_steps=1, **options)
    members = [row["members"] for row in run.history]
    assert max(members) == 4 * members[0]


def test_the_console_does_without_a_population_that_the_strategy_chooses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--preset", "none", "--network", "linear", "--noise", "counter", "--generations", "1", "--workers", "0"]
    assert main(["train", "CartPole-v1", "--algo", "cma", *options]) == 0
    assert "training: CartPole-v1 with cma" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--algo", "pgpe", "--population", "7"], "population is 7; pgpe samples in pairs: use --population 8"),
        (["--algo", "pgpe", "--noise", "low-rank"], "pgpe needs noise for every parameter; use --noise table or counter"),
        (["--algo", "pgpe", "--stdev-lr", "0"], "stdev_lr is 0.0; expected a number above 0"),
        (["--algo", "snes", "--antithetic", "--population", "5"], "antithetic sampling needs an even number"),
        (["--algo", "cma", "--hidden", "128,128"], "CMA-ES takes at most"),
        (["--algo", "cma", "--top-directions", "3"], "top_directions is not an option of cma; it belongs to es"),
        (["--optimizer", "adam", "--max-speed", "0.1"], "max_speed is 0.1, and adam has none; use --optimizer clipup"),
    ],
)
def test_wrong_values_get_status_2_and_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "CartPole-v1", "--preset", "none", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_clipup_never_steps_further_than_its_max_speed(tmp_path: Path) -> None:
    options = SMALL | {"optimizer": "clipup", "lr": 0.05, "max_speed": 0.06, "population": 8, "workers": 0, "keep": None}
    run = esker.train("CartPole-v1", run_dir=str(tmp_path / "run"), generations=4, checkpoint_every=1, **options)
    centers = [run.policy(generation).parameters for generation in range(5)]
    steps = [float(((after - before) ** 2).sum() ** 0.5) for before, after in itertools.pairwise(centers)]
    assert steps[0] == pytest.approx(0.05, rel=1e-4)
    assert steps[1:] != pytest.approx([0.05] * 3)
    assert max(steps) <= 0.06 * (1 + 1e-5)
