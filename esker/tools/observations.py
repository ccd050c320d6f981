"""Whether observations and rewards match their declared spaces, checked before training rather than during it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from esker.worlds.environments import Env

STEPS = 500


def observation_faults(env: Env, steps: int = STEPS) -> list[str]:
    """The faults in the observations of some random steps, one of each kind."""
    found: dict[str, str] = {}
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    _look(observation, env.observation_space, "reset", found)
    for number in range(1, steps + 1):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        _look(observation, env.observation_space, f"step {number}", found)
        if not np.isfinite(float(reward)):
            found.setdefault("reward", f"the reward of step {number} is {reward}")
        if terminated or truncated:
            env.reset()
    return list(found.values())


def _look(observation: Any, space: gym.Space[Any], when: str, found: dict[str, str]) -> None:
    """Note the first fault of each kind."""
    values = np.asarray(observation)
    if not isinstance(space, gym.spaces.Box):
        if not space.contains(observation):
            found.setdefault("space", f"the observation of {when} is outside {space}")
        return
    if values.shape != space.shape:
        found.setdefault("shape", f"the observation of {when} has shape {values.shape}; its space says {space.shape}")
        return
    if not np.can_cast(values.dtype, space.dtype, casting="same_kind"):
        found.setdefault("type", f"the observation of {when} is {values.dtype}; its space says {space.dtype}")
    if not np.isfinite(values.astype(np.float64)).all():
        found.setdefault("finite", f"the observation of {when} holds NaN or infinity")
        return
    outside = (values < space.low) | (values > space.high)
    if outside.any():
        place = tuple(int(index) for index in np.argwhere(outside)[0])
        where = place[0] if len(place) == 1 else place
        bounds = f"[{space.low[place]:g}, {space.high[place]:g}]"
        found.setdefault("bounds", f"element {where} of the observation of {when} is {values[place]:g}, outside {bounds}")
