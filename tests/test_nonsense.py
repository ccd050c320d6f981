"""Values that make no sense are refused in one line, before anything is written or in time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import QUICK, small_run

import esker
from esker.cli import main
from esker.errors import named_line
from esker.strategies.openai_es import OpenAIES

TRAIN = ["train", "CartPole-v1", "--generations", "1", "--workers", "0", "--preset", "none", "--noise", "counter", "--quiet"]
RUN = "RUN"
CASES = [
    ([*TRAIN, "--momentum", "1e308", "--optimizer", "sgd"], "momentum"),
    ([*TRAIN, "--sigma", "1e30"], "sigma"),
    ([*TRAIN, "--lr", "1e300"], "lr"),
    ([*TRAIN, "--cap-factor", "2"], "cap_growth is for --adaptive-cap threshold"),
    ([*TRAIN, "--cap-growth", '{"factor": 1}'], "cap_growth: factor is 1.0; expected a number above 1"),
    ([*TRAIN, "--cap-growth", '{"fctor": 2}'], "cap_growth has no field 'fctor'; did you mean 'factor'?"),
    ([*TRAIN, "--cap-growth", "[1, 2]"], "cap_growth is '[1, 2]'; expected a JSON object of initial, threshold, factor"),
    ([*TRAIN, "--cap-growth", '{"factor": 2}', "--cap-initial", "9"], "give cap_growth alone"),
    ([*TRAIN, "--population", str(10**12)], "population"),
    ([*TRAIN, "--env-kwargs", '{"a": null}'], "env_kwargs"),
    ([*TRAIN, "--env-kwargs", '{"a": "\\ud800"}'], "env_kwargs"),
    ([*TRAIN, "--config", "[" * 1_000], "does not exist"),
    ([*TRAIN, "--config", '{"env_kwargs": ' + '{"a":' * 9_000 + "1" + "}" * 9_001], "cannot be read"),
    ([*TRAIN, "--config", json.dumps({"network": "a\0b"})], "network"),
    (["train", ".envs:make", *TRAIN[2:]], "no name of a module"),
    ([*TRAIN, "--wrapper", "builtins:int"], "wrapper 'builtins:int' fails: TypeError"),
    ([*TRAIN, "--wrapper", "builtins:id"], "returned int"),
    (["eval", RUN, "--workers", "-1"], "workers is -1"),
    (["eval", RUN, "--workers", "1000000"], "workers is 1000000"),
    (["eval", RUN, "--seed", "-1"], "seed is -1"),
    (["eval", RUN, "--checkpoint", "²"], "checkpoint is '²'"),
    (["eval", RUN, "--episodes", str(10**12)], "episodes"),
    (["render", RUN, "--fps", "nan"], "fps is nan"),
    (["render", RUN, "--episodes", str(10**9)], "episodes"),
    (["render", RUN, "--size", "100000"], "size"),
]


@pytest.mark.parametrize(("arguments", "said"), CASES, ids=lambda value: str(value)[:40])
def test_nonsense_is_refused_in_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([str(small_run()) if part == RUN else part for part in arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    assert not list(tmp_path.iterdir())


def test_parameters_that_leave_the_numbers_stop_the_run_and_are_not_kept(tmp_path: Path) -> None:
    options = QUICK | {"lr": 1e6, "optimizer": "sgd", "weight_decay": 1e6, "generations": 30}
    with pytest.raises(esker.RunError, match="infinite or NaN"):
        esker.train("CartPole-v1", run_dir=str(tmp_path / "run"), **options)
    assert np.isfinite(esker.load(tmp_path / "run", "best").parameters).all()
    with pytest.raises(esker.RunError, match="infinite or NaN"):
        esker.resume(tmp_path / "run")


def test_a_policy_refuses_an_observation_that_is_no_number() -> None:
    with pytest.raises(ValueError, match="NaN"):
        esker.load(small_run()).act(np.full(4, np.nan))


def test_an_infinite_sigma_is_refused() -> None:
    with pytest.raises(ValueError, match="sigma is inf"):
        OpenAIES([0.0], sigma=float("inf"))


def test_a_state_without_numbers_is_refused() -> None:
    strategy = OpenAIES([0.0, 0.0])
    state = strategy.state_dict() | {"center": torch.tensor([float("nan"), 0.0])}
    with pytest.raises(ValueError, match="NaN or infinity"):
        strategy.load_state_dict(state)


def test_an_error_whose_text_raises_has_a_name() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not that way")

    assert named_line(Silent()) == "Silent"
