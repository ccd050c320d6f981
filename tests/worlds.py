"""Small environments with known behaviour, for tests; importable by worker processes as `worlds:Name`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np


class Corridor(gym.Env):
    """Walks right for +1 a step; ends with a terminal reward of 10 after `length` steps. Counts every step it is given."""

    def __init__(self, length: int = 7, log: str | None = None, limit: int | None = None) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        self.length, self.log, self.over = length, log, True

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.at, self.over = 0, False
        self.noise = self.np_random.normal(size=3)
        return self._observe(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert not self.over, "stepped past the end of an episode"
        if self.log:
            with open(self.log, "a") as file:
                file.write("x")
        self.at += 1
        self.over = self.at >= self.length
        return self._observe(), 10.0 if self.over else 1.0, self.over, False, {}

    def _observe(self) -> np.ndarray:
        return self.noise + self.at


class Continuous(gym.Env):
    """One action; reward -(action - target)², target from the seed; five steps."""

    def __init__(self, low: float = -1.0, high: float = 1.0) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = gym.spaces.Box(low, high, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.at, self.target = 0, self.np_random.uniform(-0.5, 0.5)
        return np.array([self.target, 1.0]), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.at += 1
        assert self.action_space.contains(action), action
        return np.array([self.target, 1.0]), -float((action[0] - self.target) ** 2), False, self.at >= 5, {}


class Spaces(gym.Env):
    """Any spaces: observations are samples, rewards constant, episodes of four steps; actions must belong."""

    def __init__(self, observation: str = "box", action: str = "discrete") -> None:
        s = gym.spaces
        observations: dict[str, gym.Space] = {
            "box": s.Box(-1, 1, (2, 3), np.float32),
            "discrete": s.Discrete(5),
            "dict": s.Dict({"a": s.Discrete(3), "b": s.Box(-1, 1, (2,), np.float32)}),
            "tuple": s.Tuple((s.Discrete(2), s.Box(-1, 1, (4,), np.float32))),
        }
        actions: dict[str, gym.Space] = {
            "discrete": s.Discrete(3, start=5),
            "multidiscrete": s.MultiDiscrete([2, 3, 4]),
            "multibinary": s.MultiBinary(3),
            "box": s.Box(np.array([-1, 0], np.float32), np.array([1, 2], np.float32)),
            "matrix": s.Box(-2, 2, (2, 2), np.float32),
            "text": s.Text(3),
        }
        self.observation_space, self.action_space = observations[observation], actions[action]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.at = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action), action
        self.at += 1
        return self.observation_space.sample(), 1.0, self.at >= 4, False, {}


class Faulty(Corridor):
    """A corridor in which something goes wrong at step 3 of the episodes whose seed has remainder `when` modulo `of`."""

    def __init__(
        self, fault: str, when: int = 0, of: int = 1, once: str | None = None, length: int = 7, first: bool = False
    ) -> None:
        super().__init__(length)
        self.first = first  # also in the episodes by which an environment is looked at before training
        self.fault, self.when, self.of, self.once = fault, when, of, once

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        result = super().reset(seed=seed)
        self.bad = seed is not None and (seed > 2 or self.first) and seed % self.of == self.when
        if self.bad and self.fault == "reset":
            raise RuntimeError("cannot reset")
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        observation, reward, terminated, truncated, info = super().step(action)
        if self.bad and self.at == 3 and self._now():
            if self.fault == "raise":
                raise RuntimeError("the robot fell over")
            if self.fault == "nan":
                reward = float("nan")
            if self.fault == "nan-observation":
                observation = observation * np.nan
            if self.fault == "shape":
                observation = observation[:1]
            if self.fault == "hang":
                time.sleep(3600)
            if self.fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fault == "exit":
                raise SystemExit(3)
            if self.fault == "leave":
                os._exit(7)
            if self.fault == "slow":
                time.sleep(0.05)
        return observation, reward, terminated, truncated, info

    def _now(self) -> bool:
        """Every time, or only the first time that anybody gets here."""
        if self.once is None:
            return True
        try:
            Path(self.once).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class Fickle(Corridor):
    """Does not repeat from its seed on a used instance: it remembers how often it was reset."""

    resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        _, info = super().reset(seed=seed)
        self.noise = self.noise + self.resets
        self.resets += 1
        return self._observe(), info


def make_corridor(**kwargs: Any) -> gym.Env:
    return Corridor(**kwargs)


def after_99_steps(env: gym.Env) -> gym.Env:
    """A wrapper: ends episodes after 99 steps."""
    return gym.wrappers.TimeLimit(env, 99)


def scale_reward(env: gym.Env) -> gym.Env:
    return gym.wrappers.TransformReward(env, lambda reward: 2.0 * float(reward))


class Huge(Corridor):
    """A billion actions, or a billion different observations."""

    def __init__(self, observed: bool = False) -> None:
        super().__init__()
        if observed:
            self.observation_space = gym.spaces.Discrete(10**9)
        else:
            self.action_space = gym.spaces.Discrete(10**9)

    def _observe(self) -> Any:
        return super()._observe() if isinstance(self.observation_space, gym.spaces.Box) else self.at


NOT_CALLABLE = 3


class Album(gym.Env):
    """Observes a picture and a number."""

    observation_space = gym.spaces.Dict(
        picture=gym.spaces.Box(0, 255, (48, 48, 3), np.uint8), number=gym.spaces.Box(0, 1, (1,))
    )
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        return self.observation_space.sample(), 0.0, True, False, {}


class Digits(gym.Env):
    """Asks for whole numbers as actions, and takes any."""

    observation_space = gym.spaces.Box(0, 1, (3,), np.float32)
    action_space = gym.spaces.Box(0, 3, (2,), np.int32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.at = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        self.at += 1
        return self._observe(), float(np.sum(action)), False, self.at >= 20, {}

    def _observe(self) -> np.ndarray:
        return self.np_random.random(3, dtype=np.float32)


class Screen(gym.Env):
    """A bright dot on a small dark picture, pushed left or right; near the middle column it is paid best."""

    def __init__(self, size: int = 8, length: int = 6) -> None:
        self.observation_space = gym.spaces.Box(0, 255, (size, size), np.uint8)
        self.action_space = gym.spaces.Box(-1, 1, (1,), np.float32)
        self.size, self.length = size, length

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.row, self.place = int(self.np_random.integers(0, self.size)), self.np_random.uniform(0, self.size - 1)
        self.at = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.at += 1
        self.place = min(max(self.place + float(action[0]), 0.0), self.size - 1.0)
        return self._observe(), -abs(self.place - (self.size - 1) / 2), False, self.at >= self.length, {}

    def _observe(self) -> np.ndarray:
        picture = np.full((self.size, self.size), 10 * self.at, dtype=np.uint8)
        picture[self.row, round(self.place)] = 255
        return picture
