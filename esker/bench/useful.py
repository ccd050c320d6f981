"""Useful steps: of those that environments are given, the share that belongs to committed episodes."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import gymnasium as gym

from esker.bench.measurement import Measurement
from esker.bench.prepared import prepared
from esker.engines.open import local_engine
from esker.worlds.environments import Environment

WORKERS = 2


def useful_steps(quick: bool) -> list[Measurement]:
    """Steps that belong to committed episodes ÷ steps the environments were given, for episodes that end early."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment("esker.bench.useful:counting", kwargs={"env": "Hopper-v5", "folder": folder})
        state, _ = prepared("Hopper-v5", {"population": 100, "center_episodes": 2}, environment)
        for path in Path(folder).iterdir():
            path.unlink()
        with closing(local_engine(state.task, WORKERS, state.table)) as engine:
            plan = state.plan()
            engine.evaluate(state.job(), plan)
        useful = sum(result.length for result in plan.results.values())
        taken = sum(path.stat().st_size for path in Path(folder).iterdir())
    detail = {"useful": f"{useful:,}", "taken": f"{taken:,}"}
    return [Measurement("useful-steps/Hopper-v5", useful / taken, "", "= 1.0", detail)]


class Count(gym.Wrapper[Any, Any, Any, Any]):
    """Adds one byte to its own file for every step."""

    file: BinaryIO

    def step(self, action: Any) -> Any:
        self.file.write(b"x")
        return self.env.step(action)


def counting(env: str, folder: str) -> Any:
    """An environment that counts every step it is given."""
    wrapped = Count(gym.make(env, disable_env_checker=True))
    wrapped.file = open(Path(folder) / str(time.monotonic_ns()), "ab", buffering=0)  # noqa: SIM115 - lives as long as it
    return wrapped
