"""`esker check`: what it warns of before hours are spent on it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from esker.cli import main
from esker.tools.check import check_environment

WORLD = """
    import gymnasium as gym
    import numpy as np


    class World(gym.Env):
        observation_space = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
        action_space = gym.spaces.Discrete(2)

        def __init__(self, fault="none"):
            self.fault = fault

        def reset(self, *, seed=None, options=None):
            self.steps = 0
            return np.zeros(3, np.float32), {}

        def step(self, action):
            self.steps += 1
            seen = np.zeros(3, np.float32)
            if self.fault == "bounds" and self.steps == 4:
                seen[2] = 4.5
            if self.fault == "shape":
                seen = np.zeros(4, np.float32)
            if self.fault == "nan":
                seen[0] = np.nan
            if self.fault == "raise":
                raise ValueError("no such tile")
            return seen, float("inf") if self.fault == "reward" else 0.0, self.steps == 10, False, {}
"""


@pytest.fixture(autouse=True)
def _world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "checked_world.py").write_text(textwrap.dedent(WORLD))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("bounds", "element 2 of the observation of step 4 is 4.5, outside [-1, 1]"),
        ("shape", "the observation of step 1 has shape (4,); its space says (3,)"),
        ("nan", "the observation of step 1 holds NaN or infinity"),
        ("reward", "the reward of step 1 is inf"),
    ],
)
def test_observations_are_held_against_their_space(fault: str, message: str) -> None:
    assert message in check_environment("checked_world:World", f'{{"fault": "{fault}"}}').warnings


def test_environment_without_a_time_limit_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "checked_world:World"]) == 0
    assert "warning" in (output := capsys.readouterr().out)
    assert "no time limit" in output
    assert "--max-episode-steps" in output


@pytest.mark.parametrize(
    ("kwargs", "wrappers", "limit"),
    [
        ("{}", (), 27_000),  # 108,000 frames, four to a step
        ('{"max_num_frames_per_episode": 1000}', (), 250),
        ('{"max_num_frames_per_episode": null}', (), 27_000),
        ("{}", ("worlds:after_99_steps",), 99),
        ('{"max_num_frames_per_episode": 100}', ("worlds:after_99_steps",), 25),
    ],
)
def test_a_game_is_limited_by_its_frames_or_by_less(kwargs: str, wrappers: tuple[str, ...], limit: int) -> None:
    pytest.importorskip("ale_py")
    report = check_environment("ALE/Pong-v5", kwargs, wrappers)
    assert (report.max_episode_steps, report.warnings) == (limit, [])


def test_environment_with_a_limit_and_good_observations_has_no_warning() -> None:
    assert check_environment("CartPole-v1").warnings == []


def test_exception_of_the_environment_is_shown_with_file_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "checked_world:World", "--env-kwargs", '{"fault": "raise"}']) == 2
    error = capsys.readouterr().err
    (line,) = [n for n, text in enumerate(textwrap.dedent(WORLD).splitlines(), start=1) if "no such tile" in text]
    assert "ValueError: no such tile (" in error
    assert f"checked_world.py:{line} in step)" in error
    assert error.count("\n") == 1


def test_the_memory_of_a_game_has_no_preset():
    pytest.importorskip("ale_py")
    assert check_environment("ALE/Pong-v5", '{"obs_type": "ram"}').preset is None
