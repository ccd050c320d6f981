"""The reference batch of virtual batch normalisation: frames of random play, collected once, by address."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from esker.noise.address import Purpose, episode_seed, key
from esker.worlds.environments import Env

SPACING = 8  # steps between two frames that are kept: neighbours show nearly the same


def collect_reference(env: Env, frames: int, seed: int) -> NDArray[np.uint8]:
    """`frames` observations of an environment under random actions; equal seeds give equal frames."""
    env.action_space.seed(key(seed, Purpose.REFERENCE) >> 33)
    kept: list[Any] = []
    episode, step = 0, 0
    observation, _ = env.reset(seed=episode_seed(seed, Purpose.REFERENCE, episode))
    while len(kept) < frames:
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        step += 1
        if step % SPACING == 0:
            kept.append(np.array(observation))
        if terminated or truncated:
            episode += 1
            observation, _ = env.reset(seed=episode_seed(seed, Purpose.REFERENCE, episode))
    return np.stack(kept).astype(np.uint8)
