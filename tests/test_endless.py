"""Episodes without end: time and Ctrl-C count within a generation, and a cap is set where none is known."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from small_runs import QUICK

import esker
from esker.runs.deadline import Deadline
from esker.runs.request import configure
from esker.worlds.limits import limited, time_limit

ROOT = str(Path(__file__).parent.parent)
WORLD = """
    import gymnasium as gym
    import numpy as np


    class Endless(gym.Env):
        observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return np.zeros(2, np.float32), {}

        def step(self, action):
            try:
                return np.zeros(2, np.float32), 0.0, False, False, {}
            except Exception:  # a user's code that swallows everything
                return np.zeros(2, np.float32), 0.0, False, False, {}
"""


@pytest.fixture(autouse=True)
def _world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless_world.py").write_text(textwrap.dedent(WORLD))
    monkeypatch.syspath_prepend(str(tmp_path))


ENDLESS = QUICK | {"generations": 5, "max_episode_steps": 10**9}


@pytest.mark.parametrize("workers", [0, 2])
def test_wall_time_ends_a_generation_that_would_not(tmp_path: Path, workers: int) -> None:
    started = time.monotonic()
    options = ENDLESS | {"workers": workers, "wall_time": 2.0}
    run = esker.train("endless_world:Endless", run_dir=str(tmp_path / "run"), **options)
    assert time.monotonic() - started < 60
    assert run.status == "finished: 2 s of training done; the unfinished generation was dropped"
    assert (run.history, run.best_return) == ([], None)


def test_run_that_was_given_up_resumes_to_the_bits_of_one_that_was_not(tmp_path: Path) -> None:
    options = QUICK | {"generations": 2, "max_episode_steps": 60}
    esker.train("endless_world:Endless", run_dir=str(tmp_path / "whole"), **options)
    esker.train("endless_world:Endless", run_dir=str(tmp_path / "cut"), **(options | {"wall_time": 0.001}))
    esker.resume(tmp_path / "cut", wall_time=None)
    assert len(esker.Run(tmp_path / "cut").history) == 2
    files = [(tmp_path / name / "checkpoints" / "000002" / "state.safetensors").read_bytes() for name in ("whole", "cut")]
    assert files[0] == files[1]


def test_interrupt_ends_a_generation_that_would_not(tmp_path: Path) -> None:
    flags = [
        "--preset",
        "none",
        "--hidden",
        "8",
        "--noise",
        "counter",
        "--workers",
        "2",
        "--max-episode-steps",
        "1000000000",
    ]
    command = [sys.executable, "-m", "esker", "train", "endless_world:Endless", *flags, "--run-dir", "run"]
    environment = os.environ | {"PYTHONPATH": ROOT}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "status").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors == "esker: interrupted; continue with: esker resume run\n"


def test_environment_without_a_limit_gets_one_with_a_notice(tmp_path: Path) -> None:
    request = configure("endless_world:Endless", {})
    config, environment, (notice,) = limited(request.config, request.environment, request.environment.make())
    assert (config.max_episode_steps, environment.max_episode_steps) == (10_000, 10_000)
    assert "has no time limit, so episodes end after 10,000 steps; --max-episode-steps" in notice
    assert time_limit(environment.make()) == 10_000


@pytest.mark.parametrize(
    ("env", "options"), [("CartPole-v1", {}), ("endless_world:Endless", {"max_episode_steps": 7, "preset": None})]
)
def test_environment_with_a_limit_is_left_alone(env: str, options: dict[str, object]) -> None:
    options = {name: value for name, value in options.items() if name != "preset"}
    request = configure(env, options)
    found = limited(request.config, request.environment, request.environment.make())
    assert found == (request.config, request.environment, [])


def test_generation_under_way_may_take_twice_as_long_as_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    now, done = 100.0, 0
    monkeypatch.setattr("esker.runs.deadline.time.monotonic", lambda: now)
    limit = Deadline(10.0, lambda: done)
    assert limit.left() == 10.0
    now, done = 104.0, 1
    limit.generation()  # took 4 s
    now = 109.0
    assert limit.left() == 3.0  # until 104 + 2 · 4, which is later than 110
    now = 112.5
    assert limit.left() < 0
    done = 2  # it is being written down, and no longer under way
    assert limit.left() > 0
