"""A world of a device as a Gymnasium environment of one row on the CPU: for evaluating what was trained on many rows."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch

from esker.worlds.device.worlds import MakeWorld


class SingleWorld(gym.Env[Any, Any]):
    """Derive from it, set `make_world`, and pass the spaces: then one definition serves training and evaluation."""

    make_world: ClassVar[MakeWorld]

    def __init__(self, observations: gym.Space[Any], actions: gym.Space[Any], options: dict[str, Any]) -> None:
        self.observation_space, self.action_space = observations, actions
        self._worlds = type(self).make_world(1, torch.device("cpu"), **options)
        self._row = torch.zeros(1, dtype=torch.int64)
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; without a seed, one drawn from this environment's own numbers."""
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(2**31)) if seed is None else seed
        self._steps = 0
        return self._worlds.reset(self._row, np.array([chosen], dtype=np.int64))[0].numpy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step of the only row."""
        self._steps += 1
        observations, rewards, terminated = self._worlds.step(torch.as_tensor(np.asarray(action))[None])
        over = terminated is not None and bool(terminated[0])
        late = self._worlds.limit is not None and self._steps >= self._worlds.limit
        return observations[0].numpy().copy(), float(rewards[0]), over, late, {}
