"""Small continuous worlds for the algorithms with gradients."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import gymnasium as gym
import numpy as np


class Reach(gym.Env):
    """Push a point to the origin within a few steps; terminates when it strays too far."""

    def __init__(self, length: int = 10, far: float = 3.0) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (2,))
        self.action_space = gym.spaces.Box(np.array([-0.5], dtype=np.float32), np.array([1.5], dtype=np.float32))
        self.length, self.far = length, far

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = self.np_random.uniform(-1, 1), 0
        return self._see(), {}

    def _see(self):
        return np.array([self.place, self.steps / self.length], dtype=np.float32)

    def step(self, action):
        self.place += 0.4 * (float(action[0]) - 0.5)
        self.steps += 1
        terminated = abs(self.place) > self.far
        return self._see(), -abs(self.place) - 5.0 * terminated, terminated, self.steps >= self.length, {}


class Broken(Reach):
    """Answers NaN after some steps."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, float("nan") if self.steps == 7 else reward, terminated, truncated, info


class Deadly(Reach):
    """Ends its process once, or stops it, where a file says so."""

    def reset(self, *, seed=None, options=None):
        path = os.environ.get("ESKER_TEST_KILL")
        if path:
            with contextlib.suppress(FileNotFoundError):  # of two workers that see the file, one takes it
                os.unlink(path)
                if os.environ.get("ESKER_TEST_STOP"):
                    os.kill(os.getpid(), signal.SIGSTOP)
                else:
                    os._exit(9)
        return super().reset(seed=seed)


class Hanging(Reach):
    """Never comes back from a step of an episode of training; the first look at it uses small seeds."""

    def reset(self, *, seed=None, options=None):
        self.hangs = seed is not None and seed > 1000
        return super().reset(seed=seed)

    def step(self, action):
        if self.hangs and self.steps == 5:
            time.sleep(1000)
        return super().step(action)
