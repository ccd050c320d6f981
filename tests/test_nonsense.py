"""Values that make no sense are refused in one line, before anything is written or in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import QUICK, small_run

import esker
from esker.cli import main
from esker.errors import named_line
from esker.strategies.openai_es import OpenAIES

TRAIN = ["train", "CartPole-v1", "--generations", "1", "--workers", "0", "--preset", "none", "--noise", "counter", "--quiet"]
HYBRID = ["--workers", "0", "--preset", "none", "--quiet"]
GRID = ["--sampler", "grid", "--pruner", "none", "--space"]
RUN = "RUN"
CASES = [
    ([*TRAIN, "--momentum", "1e308", "--optimizer", "sgd"], "momentum"),
    ([*TRAIN, "--sigma", "1e30"], "sigma"),
    ([*TRAIN, "--lr", "1e300"], "lr"),
    ([*TRAIN, "--sigma-decay", "1e300"], "sigma_decay"),
    ([*TRAIN, "--lr-decay", "3"], "lr_decay"),
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
    (["train", ".envs:make", *TRAIN[2:]], "not a module name"),
    ([*TRAIN, "--wrapper", "builtins:int"], "wrapper 'builtins:int' fails: TypeError"),
    ([*TRAIN, "--wrapper", "builtins:id"], "returned int"),
    (["train", "worlds:Huge", *TRAIN[2:]], "65,000,004,416 parameters: at least"),
    (
        ["train", "worlds:Huge", *TRAIN[2:], "--env-kwargs", '{"observed": true}'],
        "are 1,000,000,000 numbers",
    ),
    ([*TRAIN, "--hidden", "1000000,1000000"], "parameters: at least"),
    ([*TRAIN, "--slots", "60000", "--hidden", "1000,1000"], "use fewer --slots"),
    ([*TRAIN, "--slots", str(10**8)], "slots"),
    ([*TRAIN, "--min-steps", str(10**12)], "min_steps"),
    ([*TRAIN, "--noise", "low-rank", "--rank", str(10**9)], "rank"),
    ([*TRAIN, "--noise", "table", "--table-size", str(10**14)], "table_size is 100,000,000,000,000: at least 400,000 GB"),
    ([*TRAIN, "--population", str(10**7), "--episodes-per-member", str(10**6)], "episodes in a generation"),
    (["train", "Pendulum-v1", *HYBRID, "--algo", "cem-rl", "--population", str(10**7)], "use a smaller --population"),
    (["train", "Pendulum-v1", *HYBRID, "--algo", "td3", "--batch-size", str(10**12)], "batch_size"),
    ([*TRAIN, "--seeds", "0..1000000000"], "at most 10,000 of them"),
    (["sweep", *TRAIN[1:], "--trials", str(10**9)], "trials is 1000000000; expected 1 to"),
    (["sweep", *TRAIN[1:], *GRID, "lr=0.1..0.2:1000", "sigma=0.1..0.2:1000"], "the grid has at least 1,000,000 points"),
    (["sweep", *TRAIN[1:], *GRID, "lr=0.1..0.2:100000000"], "grid points"),
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
    run = esker.Run(tmp_path / "run")
    assert np.isfinite(run.policy("best").parameters).all()
    assert run.folder.committed() == len(run.history)  # the generation that failed was not committed
    with pytest.raises(esker.RunError, match="infinite or NaN"):
        esker.resume(run.path)


def test_an_interrupt_while_the_centre_moves_leaves_a_run_that_resumes_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell, calls = OpenAIES.tell, []

    def interrupted(self: OpenAIES, fitness: np.ndarray) -> Any:
        calls.append(1)
        if len(calls) == 3:
            self.center.mul_(2)  # half moved
            raise KeyboardInterrupt
        return tell(self, fitness)

    monkeypatch.setattr(OpenAIES, "tell", interrupted)
    with pytest.raises(KeyboardInterrupt):
        esker.train("CartPole-v1", run_dir=str(tmp_path / "run"), **QUICK, generations=4)
    monkeypatch.undo()
    run = esker.resume(tmp_path / "run")
    assert np.array_equal(run.policy("latest").parameters, esker.load(small_run(), "latest").parameters)


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


@pytest.mark.parametrize("name", ["x\x00y", "\ud800"])
def test_an_output_that_cannot_be_a_file_is_refused_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["render", str(small_run()), "-o", name]) == 2
    assert capsys.readouterr().err.endswith("cannot be the name of a file\n")


def test_an_output_with_a_colon_is_a_folder_and_no_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["render", str(small_run()), "-o", "x:y", "--max-steps", "3"]) == 0
    assert len(list((tmp_path / "x:y").glob("*.mp4"))) == 1


def test_a_limit_of_centuries_is_a_limit(tmp_path: Path) -> None:
    run = esker.train("CartPole-v1", run_dir=tmp_path / "run", **{**QUICK, "generations": 1, "wall_time": 9.3e9})
    assert len(run.history) == 1


def test_a_number_of_thousands_of_digits_and_a_size_of_zero_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments in (["train", "HalfCheetah-v5", "--population", "9" * 5000], ["render", str(small_run()), "--size", "0"]):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith("esker: error: ")
        assert error.count("\n") == 1


@pytest.mark.parametrize("strategy", [OpenAIES, esker.CMA, esker.SepCMA])
def test_a_state_whose_sigma_is_no_number_is_not_loaded(strategy: Any) -> None:
    made = strategy(torch.zeros(3), population=6)
    with pytest.raises(ValueError, match="sigma is nan"):
        made.load_state_dict({**made.state_dict(), "sigma": float("nan")})
