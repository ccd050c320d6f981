"""Environments for the cluster tests, imported by the nodes' workers."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import gymnasium as gym
import numpy as np


class Slow(gym.Wrapper[Any, Any, Any, Any]):
    """CartPole whose steps take a while, and for ever while a file is there, so that things happen in mid-episode."""

    def __init__(self, pause: float, hold: str | None) -> None:
        super().__init__(gym.make("CartPole-v1", max_episode_steps=50))
        self.pause = pause
        self.hold = hold if "esker.engines.worker" in sys.orig_argv else None  # a node's fingerprint is not held

    def step(self, action: Any) -> Any:
        time.sleep(self.pause)
        while self.hold and os.path.exists(self.hold):
            time.sleep(0.02)
        return self.env.step(action)


def make_slow(pause: float = 0.002, hold: str | None = None) -> gym.Env[Any, Any]:
    return Slow(pause, hold)


class Faulty(gym.Wrapper[Any, Any, Any, Any]):
    """CartPole that raises in the episode of one seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(gym.make("CartPole-v1"))
        self.bad = seed
        self.seed = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.seed = seed or 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        if self.seed == self.bad:
            raise ValueError("the wheel came off")
        return self.env.step(action)


def make_faulty(seed: int) -> gym.Env[Any, Any]:
    return Faulty(seed)


class Slowpoke(gym.Env[Any, Any]):
    """Ten steps; slow only in processes whose environment says so."""

    observation_space = gym.spaces.Box(-1, 1, (3,), np.float64)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.left = 10
        return self.np_random.uniform(-1, 1, 3), {}

    def step(self, action: Any) -> Any:
        time.sleep(float(os.environ.get("SLOWPOKE", "0.001")))
        self.left -= 1
        observation = self.np_random.uniform(-1, 1, 3)
        return observation, float(observation[0] * action[0]), self.left == 0, False, {}


class Trudging(gym.Wrapper[Any, Any, Any, Any]):
    """A small continuous world whose steps take a while."""

    def __init__(self, pause: float = 0.005) -> None:
        from hybrid_worlds import Reach

        super().__init__(Reach())
        self.pause = pause

    def step(self, action: Any) -> Any:
        time.sleep(self.pause)
        return self.env.step(action)
