"""User code that raises or returns what makes no sense: it is used, or the error is one line of esker's own."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strange
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strange import Defect, Odd
from watched import EXAMPLES, limited

import esker
from esker.runs.folder import RunFolder

many = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, print_blob=False
)
FAST: dict[str, Any] = {"noise": "counter", "quiet": True, "population": 2}
TRAIN: dict[str, Any] = {**FAST, "workers": 0, "generations": 1, "preset": None, "hidden": (2,), "max_episode_steps": 5}
REFUSALS = ("the function returned", "fitness[", "every member failed")  # of a minimisation: plain ValueErrors

at = st.sampled_from([0, 1, 2, 5])
values, errors = st.sampled_from(strange.VALUES), st.sampled_from(strange.ERRORS)


def defects(*places: str) -> st.SearchStrategy[Defect]:
    """A value or an error, in one of the places."""
    place = st.sampled_from(places)
    part = st.none() | st.integers(0, 4)
    by_value = st.builds(lambda *given: Defect(given[0], given[1], None, given[2], given[3]), place, at, values, part)
    by_error = st.builds(lambda *given: Defect(given[0], given[1], given[2]), place, at, errors)
    return by_value | by_error


@contextmanager
def refused(defect: Defect, passes: bool = False) -> Iterator[None]:
    """Errors must be esker's own, with a first line that names what was wrong; `passes`: or the one that was thrown."""
    lines: list[str] | None = None
    with limited():
        try:
            yield
        except (esker.UsageError, esker.RunError) as error:
            lines = str(error).splitlines() if isinstance(error, esker.RunError) else [str(error)]
        except BaseException as error:
            if not (passes and _is_thrown(error, defect)):
                raise
    assert lines is None or (lines[0].strip() and "\n" not in lines[0]), lines


def _is_thrown(error: BaseException, defect: Defect) -> bool:
    return any(error is one for one in defect.thrown)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # there a run need not wait for the disk
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        monkeypatch.chdir(folder)
        yield
        monkeypatch.undo()


def committed_is_finite(folder: Path) -> None:
    """What a run committed can be learned from, whatever happened after it."""
    for facts in RunFolder(folder).facts():
        assert not np.isnan(facts.fitness).any()
        assert not np.isposinf(facts.fitness).any()
        assert np.isfinite(facts.statistics_total).all()
        assert np.isfinite(facts.statistics_squares).all()


def model(kind: str) -> Any:
    return torch.zeros(2) if kind == "tensor" else torch.nn.Linear(1, 1)


options = st.fixed_dictionaries(
    {},
    optional={
        "on_error": st.sampled_from(["stop", "worst"]),
        "evaluations_per_member": st.just(2),
        "center_evaluations": st.just(2),
        "shaping": st.sampled_from(["centered_rank", "normalized", "raw"]),
        "strategy": st.sampled_from(["openai-es", "cma", "snes", "pgpe"]),
        "final": st.sampled_from(["best", "last"]),
        "goal": st.just(2.0),
        "gradients": st.just(True),
    },
)


@many
@given(defects("reward"), options, st.sampled_from(["tensor", "module"]), st.booleans())
def test_rewards(defect: Defect, given: dict[str, Any], kind: str, tested: bool) -> None:
    subject = model(kind)
    more = {"test_kwargs": {}} if tested else {}
    with refused(defect), tempfile.TemporaryDirectory(dir=os.getcwd()) as place:
        folder = Path(place) / "run"
        evolution = esker.Evolution(
            subject, lambda model: defect.of("reward", 1.0), workers=0, run_dir=str(folder), **FAST, **more, **given
        )
        try:
            evolution.run(2, report_every=1)
        finally:
            committed_is_finite(folder)
            tensors = [subject] if kind == "tensor" else list(subject.parameters())
            assert all(torch.isfinite(tensor).all() for tensor in tensors)


@many
@given(defects("reward"), options, st.sampled_from(["tensor", "module"]), st.sampled_from(["counter", "low-rank"]))
def test_batched_rewards(defect: Defect, given: dict[str, Any], kind: str, noise: str) -> None:
    subject = model("module" if noise == "low-rank" else kind)
    if noise == "low-rank":  # it has a strategy of its own
        given = {name: value for name, value in given.items() if name != "strategy"}

    def reward(members: Any) -> Any:
        count = len(members) if kind == "tensor" or noise == "low-rank" else len(next(iter(members.values())))
        return defect.of("reward", torch.ones(count))

    with refused(defect):
        esker.Evolution(subject, reward_batch=reward, **{**FAST, "noise": noise}, **given).run(2)
    tensors = [subject] if isinstance(subject, torch.Tensor) else list(subject.parameters())
    assert all(torch.isfinite(tensor).all() for tensor in tensors)


@many
@given(
    defects("function"),
    st.sampled_from(["cma", "sep-cma", "snes", "pgpe", "openai-es"]),
    st.booleans(),
)
def test_minimised_functions(defect: Defect, strategy: str, batched: bool) -> None:
    def function(rows: torch.Tensor) -> Any:
        return defect.of("function", rows.square().sum(-1))

    with refused(defect, passes=True):
        try:
            found = esker.minimize(function, [1.0, 2.0], strategy, batched=batched, evaluations=12, population=2)
        except ValueError as error:
            if not _is_thrown(error, defect) and not str(error).startswith(REFUSALS):
                raise
        else:
            assert torch.isfinite(found.strategy.center).all()
            assert not np.isnan(found.value)


ENVIRONMENT = st.fixed_dictionaries(
    {},
    optional={
        "on_error": st.sampled_from(["stop", "worst"]),
        "normalize_observations": st.booleans(),
        "fresh_environments": st.just(True),
        "episodes_per_member": st.just(2),
        "shaping": st.sampled_from(["sign", "raw", "normalized"]),
        "noise": st.sampled_from(["counter", "low-rank"]),
        "action_mode": st.sampled_from(["tanh", "binned"]),
        "network": st.sampled_from(["linear", "gru"]),
        "time_aware": st.just(True),
        "center_episodes": st.just(2),
    },
)


def train(make: Any, given: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as place:
        folder = Path(place) / "run"
        try:
            run = esker.train(make, run_dir=str(folder), **{**TRAIN, **given})
            run.evaluate(episodes=1, workers=0)
        finally:
            if (folder / "about.json").exists():
                committed_is_finite(folder)


@many
@given(
    defects("init", "reset", "step", "step", "step", "close", "spaces"),
    st.just(strange.OBSERVATIONS[0]) | st.sampled_from(strange.OBSERVATIONS),  # half of them plain: the defect is reached
    st.just(strange.ACTIONS[0]) | st.sampled_from(strange.ACTIONS),  # half of them plain: the defect is reached
    ENVIRONMENT,
    st.booleans(),
)
def test_environments(defect: Defect, seen: Callable[[], Any], done: Callable[[], Any], given: Any, endless: bool) -> None:
    defect.at *= 7 if defect.place == "step" else 1  # also after the first look at the environment
    with refused(defect):
        train(lambda: Odd(defect, seen(), done(), endless), {**TRAIN, **given})


def plain() -> Odd:
    """An environment without a defect."""
    return Odd(Defect("nowhere"), strange.OBSERVATIONS[0](), strange.ACTIONS[0]())


@many
@given(defects("shaping", "activation"), st.sampled_from(["stop", "worst"]))
def test_functions_by_path(defect: Defect, on_error: str) -> None:
    strange.present = defect
    with refused(defect):
        train(plain, {"shaping": "strange:shaping", "activation": "strange:activation", "on_error": on_error})


@many
@given(defects("begin", "generation", "end"))
def test_a_logger_never_ends_a_run(defect: Defect) -> None:
    strange.present = defect
    with limited(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        train(plain, {"log": "strange:Watcher"})


@many
@given(defects("on_generation", "on_checkpoint", "on_stop", "begin", "generation", "note", "end"))
def test_callbacks_and_observers(defect: Defect) -> None:
    strange.present = defect
    names = ("on_generation", "on_checkpoint", "on_stop")
    callbacks = {name: lambda thing, name=name: defect.of(name, None) for name in names}
    with refused(defect, passes=True):
        train(plain, {**callbacks, "observer": strange.Watcher()})


@many
@given(defects("model", "params", "on_iteration", "begin", "generation", "note", "end"))
def test_callables_of_an_evolution(defect: Defect) -> None:
    strange.present = defect
    with refused(defect, passes=True):
        esker.Evolution(
            lambda: defect.of("model", torch.nn.Linear(1, 1)),
            lambda model: 1.0,
            params=lambda name, tensor: defect.of("params", True),
            on_iteration=lambda row: defect.of("on_iteration", None),
            observer=strange.Watcher(),
            workers=0,
            **FAST,
        ).run(2)
