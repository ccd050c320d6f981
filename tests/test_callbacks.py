"""Callbacks of the Python API: what they see, and that they can stop a run without losing anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esker

SMALL: dict[str, Any] = {
    "preset": None,
    "quiet": True,
    "population": 6,
    "hidden": "8",
    "workers": 0,
    "table_size": 10_000,
    "center_episodes": 1,
}


def test_on_generation_sees_every_row_and_stops_the_run(tmp_path: Path) -> None:
    seen: list[int] = []

    def stop_at_three(row: dict[str, Any]) -> bool:
        seen.append(row["generation"])
        return len(seen) == 3

    run = esker.train("CartPole-v1", run_dir=str(tmp_path / "run"), generations=9, on_generation=stop_at_three, **SMALL)
    assert seen == [0, 1, 2]
    assert run.status == "finished: stopped by a callback"
    whole = esker.train("CartPole-v1", run_dir=str(tmp_path / "whole"), generations=5, **SMALL)
    resumed = esker.resume(run.path, generations=5)
    assert np.array_equal(resumed.policy("latest").parameters, whole.policy("latest").parameters)


def test_a_callback_may_say_why_it_stops(tmp_path: Path) -> None:
    run = esker.train("CartPole-v1", run_dir=str(tmp_path / "run"), on_generation=lambda row: "dull", **SMALL)
    assert run.status == "finished: dull"
    assert len(run.history) == 1


def test_on_checkpoint_sees_the_files_of_every_snapshot(tmp_path: Path) -> None:
    seen: list[Any] = []
    run = esker.train(
        "CartPole-v1",
        run_dir=str(tmp_path / "run"),
        generations=4,
        checkpoint_every=2,
        keep=None,
        on_checkpoint=seen.append,
        **SMALL,
    )
    assert all((checkpoint.path / "state.safetensors").is_file() for checkpoint in seen)
    assert {c.generation for c in seen if not c.best} == {2, 4}
    assert [c.generation for c in seen if c.best][-1] == int((run.path / "best").read_text())


def test_on_checkpoint_stops_the_run(tmp_path: Path) -> None:
    run = esker.train(
        "CartPole-v1",
        run_dir=str(tmp_path / "run"),
        generations=9,
        checkpoint_every=3,
        on_checkpoint=lambda checkpoint: not checkpoint.best and checkpoint.generation >= 3,
        **SMALL,
    )
    assert len(run.history) == 3


def test_on_stop_sees_a_run_in_order_even_when_it_failed(tmp_path: Path) -> None:
    ended: list[str] = []

    def fail(row: dict[str, Any]) -> None:
        raise ZeroDivisionError("in the callback")

    options = {"run_dir": str(tmp_path / "run"), "on_stop": lambda run: ended.append(run.status)}
    with pytest.raises(ZeroDivisionError, match="in the callback"):
        esker.train("CartPole-v1", on_generation=fail, **options, **SMALL)
    esker.resume(tmp_path / "run", generations=2, on_stop=options["on_stop"])
    assert ended == ["failed: in the callback", "finished: 2 generations done"]
