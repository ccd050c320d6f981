"""`esker eval` names another checkpoint when the journal makes it likely that it is better, and only then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import esker
from esker.cli import main
from esker.runs.better import likely_better
from esker.runs.evaluation import Evaluation


def rows(values: list[float]) -> list[dict[str, float]]:
    return [{"generation": generation, "center_return": value} for generation, value in enumerate(values)]


def evaluated(mean: float, spread: float, checkpoint: int, episodes: int = 20) -> Evaluation:
    returns = [mean - spread, mean + spread] * (episodes // 2)
    return Evaluation(returns, [1] * episodes, checkpoint)


def test_a_lucky_best_is_distinguished_from_the_plateau_behind_it() -> None:
    # a Humanoid run: the chosen centre was read as 7,371 and evaluates to 5,870 ± 1,552; later ones hold 7,250
    rng = np.random.default_rng(0)
    readings = [*(6000 + rng.normal(0, 700, 60)), 7371.0, *(7250 + rng.normal(0, 60, 40))]
    text = likely_better(rows(readings), evaluated(5870, 1552, 60), 2, range(102))
    assert text is not None
    generation = int(text.split()[1])
    assert 61 <= generation <= 100
    assert text.endswith(f"compare with --checkpoint {generation}")


def test_an_honest_best_is_left_alone_however_lucky_the_windows() -> None:
    wrong = []
    for seed in range(100):
        readings = 7000 + np.random.default_rng(seed).normal(0, 1500, 300)
        wrong.append(likely_better(rows(list(readings)), evaluated(7000, 1500, 150, 100), 2, range(301)) is not None)
    assert sum(wrong) == 0


def test_negative_returns_are_compared_the_right_way_round() -> None:
    worse, better = rows([-300.0, -301.0] * 20), rows([-150.0, -151.0] * 20)
    assert likely_better(worse, evaluated(-200, 5, 3), 4, range(41)) is None
    assert likely_better(better, evaluated(-200, 5, 3), 4, range(41)) is not None


def test_few_episodes_conclude_nothing_and_only_kept_checkpoints_are_named() -> None:
    readings = rows([1.0] * 50 + [100.0, 101.0] * 25)
    assert likely_better(readings, evaluated(1, 0.1, 0, episodes=4), 4, range(101)) is None
    assert likely_better(readings, evaluated(1, 0.1, 0), 4, [0, 10]) is None
    text = likely_better(readings, evaluated(1, 0.1, 0), 4, [0, 10, 90])
    assert text is not None
    assert text.startswith("checkpoint 90 is likely better (the centres around it had a mean of 100.")


def test_the_command_prints_it_as_one_note_and_json_stays_whole(tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    options = {"population": 20, "hidden": (8,), "sigma": 0.1, "lr": 0.1, "center_episodes": 5, "generations": 25}
    esker.train("CartPole-v1", preset=None, workers=0, run_dir=str(run), quiet=True, **options)
    capsys.readouterr()
    assert main(["eval", str(run), "--checkpoint", "0", "--episodes", "10", "--workers", "0", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["checkpoint"] == 0
    notes = [line for line in shown.err.splitlines() if "likely better" in line]
    assert len(notes) == 1
    assert notes[0].startswith("note: checkpoint ")
