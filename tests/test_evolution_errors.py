"""Every wrong request to Evolution is answered with one clear line."""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import esker

FAST: dict[str, Any] = {"noise": "counter", "quiet": True, "workers": 0, "population": 4}


def model() -> nn.Module:
    return nn.Linear(2, 1)


def one(model: Any) -> float:
    return 1.0


def needs_more(model: Any, other: Any) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "reward returned None; expected a number"),
        (float("nan"), "reward returned nan; expected a finite number"),
        (float("inf"), "reward returned inf"),
        (torch.zeros(3), "reward returned 3 values; expected one number"),
        ([1.0, 2.0], "reward returned a list; expected a number"),
        (torch.zeros((), device="meta"), "reward returned a tensor on meta; expected it on cpu"),
        ("high", "reward returned a str; expected a number"),
        (1e308, r"reward returned 1e\+308; expected a finite number below 1e\+150"),
        (np.complex64(2j), "reward returned a complex64; expected a number"),
        (10**400, "reward returned a int; expected a number .OverflowError: int too large"),
    ],
)
def test_wrong_results_of_a_reward_are_named_with_member_and_seed(answer: Any, message: str) -> None:
    with pytest.raises(esker.RunError, match=message) as caught:
        esker.Evolution(model(), lambda m: answer, **FAST).run(1)
    first, advice = str(caught.value).splitlines()
    assert "generation 0, the centre, evaluation 0, seed " in first
    assert "0 complete generations" in advice


def test_an_exception_in_the_reward_names_the_member_and_shows_the_trace() -> None:
    def fails(model: Any) -> float:
        raise KeyError("missing")

    with pytest.raises(esker.RunError, match="KeyError: 'missing'") as caught:
        esker.Evolution(model(), fails, **{**FAST, "workers": 1}).run(1)
    assert "in fails" in str(caught.value)


class NoText(Exception):
    def __str__(self) -> str:
        raise LookupError


@pytest.mark.parametrize("form", ["reward", "reward_batch"])
@pytest.mark.parametrize("error", [SystemExit, StopIteration, NoText])
def test_what_ends_loops_or_processes_or_has_no_text_is_named(form: str, error: type[BaseException]) -> None:
    def fails(members: Any) -> Any:
        raise error

    inline = {"workers": 0} if form == "reward" else {}
    with pytest.raises(esker.RunError, match=error.__name__):
        esker.Evolution(torch.ones(2), **{form: fails}, **inline, noise="counter", population=4).run(1)


def test_complex_numbers_of_a_batch_are_refused() -> None:
    with pytest.raises(esker.RunError, match="reward_batch returned complex numbers; expected a dense tensor of 1 real"):
        esker.Evolution(torch.ones(2), reward_batch=lambda x: x.sum(-1) + 1j, noise="counter", population=4).run(1)


def test_a_test_call_that_raises_is_named() -> None:
    def reward(model: Any, test: bool = False) -> float:
        return {}["missing"] if test else 1.0

    with pytest.raises(esker.RunError, match="the test call after generation 1: KeyError: 'missing'"):
        esker.Evolution(model(), reward, test_kwargs={"test": True}, **FAST).run(1, report_every=1)


def test_a_callback_whose_result_has_no_truth_is_named() -> None:
    with pytest.raises(esker.RunError, match="on_iteration returned a Tensor; expected True, a text or None"):
        esker.Evolution(model(), one, on_iteration=lambda row: torch.ones(2), **FAST).run(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": nn.Tanh()}, "the model has no parameters"),
        ({"model": "net"}, "model is a str; expected a torch module, a tensor or a list of tensors"),
        ({"model": [torch.ones(2), 3]}, "model is a list; expected a torch module"),
        ({"model": torch.ones(3, dtype=torch.int64)}, "parameter '0' is torch.int64; only floating-point"),
        ({"model": nn.Linear(2, 1, device="meta")}, "parameter 'weight' has no values yet"),
        ({"model": nn.Linear(2, 1).requires_grad_(False)}, "every chosen parameter is frozen"),
        ({"model": torch.tensor([1.0, torch.nan])}, "hold NaN or infinity"),
        ({"params": ["wieght"]}, "params names 'wieght'.*did you mean 'weight'"),
        ({"params": lambda name, p: False}, "params chooses no parameter"),
        ({"params": lambda name, p: torch.ones(2)}, "params returned a Tensor for 'weight'; expected True or False"),
        ({"model": [torch.ones(2)], "params": ["0"]}, "params is for modules"),
        ({"reward": 3}, "reward is a int; expected a function"),
        ({"reward": None}, "expected either reward or reward_batch"),
        ({"reward": needs_more}, "missing a required argument: 'other'; bind its other arguments"),
        ({"reward": lambda: 1.0}, "too many positional arguments"),
        ({"test_kwargs": {"render": True}}, "unexpected keyword argument 'render'"),
        ({"popluation": 3}, "unknown option 'popluation'; did you mean 'population'"),
        ({"population": 5}, "antithetic sampling needs an even number"),
        ({"sigma": 0}, "sigma is 0.0; expected a number above 0"),
        ({"lr": "fast"}, "lr is 'fast'; expected a number"),
        ({"goal": 1.0}, "goal is 1, given without patience"),
        ({"shaping": "sign"}, "shaping 'sign' counts the rewards of steps"),
        ({"device": "cuda:99"}, "device 'cuda:99' cannot be used here"),
        ({"device": "gpu"}, "device 'gpu' cannot be used here"),
        ({"timeout": 1.0}, "timeout needs worker processes"),
        ({"generations": 3}, "generations is not an option here"),
        ({"members_per_batch": 3}, "members_per_batch is for reward_batch"),
        ({"noise": "table", "table_size": 3}, "table_size is 3, too small for 3 parameters"),
        ({"momentum": 0.5}, "momentum is 0.5, and adam has none"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(arguments: dict[str, Any], message: str) -> None:
    options = {"model": model(), "reward": one, **FAST, **arguments}
    with pytest.raises(esker.UsageError, match=message) as caught:
        esker.Evolution(**options)
    assert "\n" not in str(caught.value)


def test_a_strategy_that_is_no_text_is_refused() -> None:
    with pytest.raises(esker.UsageError, match=r"strategy is \['cma'\]; expected text"):
        esker.Evolution(torch.zeros(2), one, strategy=["cma"], quiet=True)


def test_low_rank_noise_has_one_strategy() -> None:
    with pytest.raises(esker.UsageError, match="strategy is 'snes', and noise='low-rank' has a strategy of its own"):
        esker.Evolution(model(), reward_batch=one, noise="low-rank", strategy="snes", quiet=True)


@pytest.mark.parametrize("name", ["workers", "executor", "timeout", "common_seeds"])
def test_options_without_use_are_refused_with_a_batched_reward(name: str) -> None:
    value = {"workers": 2, "executor": "threads", "timeout": 1.0, "common_seeds": True}[name]
    with pytest.raises(esker.UsageError, match=f"{name} is for reward\\(model\\)"):
        esker.Evolution(model(), reward_batch=one, **{name: value})


@pytest.mark.parametrize(("iterations", "every"), [(0, 10), (-1, 10), (1.5, 10), (3, 0)])
def test_run_refuses_what_is_no_number_of_iterations(iterations: Any, every: Any) -> None:
    with pytest.raises(esker.UsageError, match="expected a whole number of at least 1"):
        esker.Evolution(model(), one, **FAST).run(iterations, report_every=every)


def test_an_unpicklable_reward_is_named_with_the_remedies() -> None:
    lock = threading.Lock()

    def locked(model: Any) -> float:
        with lock:
            return 1.0

    def takes(guard: Any, model: Any) -> float:
        return 1.0

    cases = [
        (locked, "its variable 'lock' is a lock"),
        (functools.partial(takes, lock), "bound argument 0 is a lock"),
        (Holder(lock).score, "attribute 'guard' of a Holder is a lock"),
    ]
    for reward, culprit in cases:
        with pytest.raises(esker.UsageError, match=culprit) as caught:
            esker.Evolution(model(), reward, **{**FAST, "workers": 2}).run(1)
        assert "workers=0 (in this process) or executor='threads'" in str(caught.value)
        assert "\n" not in str(caught.value)
    esker.Evolution(model(), locked, **{**FAST, "workers": 2, "executor": "threads"}).run(1)


class Holder:
    def __init__(self, guard: Any) -> None:
        self.guard = guard

    def score(self, model: Any) -> float:
        return 1.0


def test_an_unpicklable_model_is_named(tmp_path: Path) -> None:
    holder = model()
    holder.handle = (tmp_path / "file").open("w")
    with pytest.raises(esker.UsageError, match="the model cannot be sent to worker processes \\(attribute 'handle'"):
        esker.Evolution(holder, one, **{**FAST, "workers": 1}).run(1)
    holder.handle.close()


def test_a_reward_that_kills_its_worker_stops_the_run_with_its_member() -> None:
    import os

    with pytest.raises(esker.RunError, match="ended with status 3, 3 times in a row"):
        esker.Evolution(model(), lambda m: os._exit(3), **{**FAST, "workers": 1}).run(1)


def test_a_reward_that_hangs_is_stopped_by_the_timeout() -> None:
    import time

    with pytest.raises(esker.RunError, match=r"took longer than 0\.2 s"):
        esker.Evolution(model(), lambda m: time.sleep(60), **{**FAST, "workers": 1, "timeout": 0.2}).run(1)


@pytest.mark.parametrize("form", ["reward", "reward_batch"])
def test_an_iteration_in_which_all_members_failed_is_not_committed(tmp_path: Path, form: str) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1) * torch.nan

    options = {"noise": "counter", "quiet": True, "population": 4, "on_error": "worst"}
    inline = {"workers": 0} if form == "reward" else {}
    folder = tmp_path / "run"
    evolution = esker.Evolution(torch.ones(2), **{form: broken}, run_dir=str(folder), **inline, **options)
    with pytest.raises(esker.RunError, match="generation 0: every member failed"):
        evolution.run(2)
    repaired = esker.Evolution.resume(folder, torch.ones(2), **{form: lambda x: -(x**2).sum(-1)}, **inline)
    repaired.run(2)
    assert repaired.iteration == 2


def test_a_used_run_folder_is_refused(tmp_path: Path) -> None:
    esker.Evolution(model(), one, run_dir=str(tmp_path / "run"), **FAST).run(1)
    with pytest.raises(esker.UsageError, match="already holds a run"):
        esker.Evolution(model(), one, run_dir=str(tmp_path / "run"), **FAST)


def test_a_save_path_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "w.pt", tmp_path):
        with pytest.raises(esker.UsageError, match="cannot be written"):
            esker.Evolution(model(), one, save_path=path, **FAST)


def test_a_save_path_needs_no_suffix(tmp_path: Path) -> None:
    esker.Evolution(model(), one, save_path=tmp_path / "weights", **FAST).run(1)
    assert torch.load(tmp_path / "weights", weights_only=True).keys() == model().state_dict().keys()


def test_a_save_path_that_vanishes_under_way_is_reported_and_the_model_kept(tmp_path: Path) -> None:
    x, path = torch.ones(2), tmp_path / "weights" / "w.pt"
    evolution = esker.Evolution(x, lambda x: -(x**2).sum(), lr=0.1, save_path=path, **FAST)
    path.parent.rmdir()
    with pytest.raises(esker.RunError, match="could not be saved to"):
        evolution.run(3)
    assert float(x.sum()) < 2
