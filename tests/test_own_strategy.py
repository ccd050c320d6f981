"""A strategy of a user's own: by path, exact, resumable, with everything else as for ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import esker
from esker.cli import main

EXAMPLES = str(Path(__file__).parent.parent / "examples")
PATH = "own_strategy:Truncation"
OPTIONS: dict[str, Any] = {
    "preset": None,
    "strategy": PATH,
    "sigma": 0.1,
    "noise": "counter",
    "population": 20,
    "quiet": True,
}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)


def test_the_example_moves_the_centre_to_the_mean_of_the_better_half() -> None:
    from own_strategy import Truncation

    strategy = Truncation(np.zeros(3), population=4, sigma=0.5)
    rows = strategy.ask().parameters()
    strategy.tell([1.0, 4.0, 2.0, 3.0])
    torch.testing.assert_close(strategy.center, (rows[1] + rows[3]) / 2)


def test_a_strategy_by_path_trains_resumes_and_evaluates(tmp_path: Path) -> None:
    whole = esker.train("CartPole-v1", run_dir=str(tmp_path / "whole"), generations=6, workers=2, **OPTIONS)
    esker.train("CartPole-v1", run_dir=str(tmp_path / "half"), generations=3, workers=0, **OPTIONS)
    again = esker.resume(tmp_path / "half", generations=6, quiet=True)
    assert (whole.policy("latest").parameters == again.policy("latest").parameters).all()
    assert not (whole.policy("latest").parameters == whole.policy(0).parameters).all()
    assert len(esker.evaluate(tmp_path / "half", episodes=2, checkpoint="latest", workers=0)[0].returns) == 2


def test_a_strategy_by_path_evolves_a_model() -> None:
    target = torch.linspace(-1, 1, 5)
    weights = torch.zeros(5)
    options = {"population": 40, "sigma": 0.2, "workers": 0, "noise": "counter", "quiet": True}
    evolution = esker.Evolution(weights, lambda w: -float(((w - target) ** 2).sum()), strategy=PATH, **options)
    evolution.run(40)
    assert float(((weights - target) ** 2).sum()) < 0.05


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("own_strategy:Missing", "strategy 'own_strategy:Missing': 'own_strategy' has no 'Missing'"),
        ("no_such_module:X", "strategy 'no_such_module:X': cannot import 'no_such_module'"),
        ("math:pi", "strategy 'math:pi' does not fit: it has no ask, tell, state_dict, load_state_dict"),
        ("opnai-es", "unknown strategy 'opnai-es'; did you mean 'openai-es'?"),
    ],
)
def test_what_is_no_strategy_is_refused_in_one_line(path: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "CartPole-v1", "--preset", "none", "--strategy", path, "--generations", "1"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
