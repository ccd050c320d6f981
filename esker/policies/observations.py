"""Which observations are images, and which are vectors."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


def is_image(space: gym.Space[Any]) -> bool:
    """An image is a Box of bytes with two or three axes; every other Box is a vector once flattened."""
    return isinstance(space, gym.spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)


def shown(space: gym.Space[Any]) -> str:
    """A space in one line."""
    return " ".join(str(space).split())


def holds_images(space: gym.Space[Any]) -> bool:
    """Whether a Dict or Tuple has an image somewhere inside."""
    if isinstance(space, gym.spaces.Dict):
        return any(holds_images(part) for part in space.spaces.values())
    if isinstance(space, gym.spaces.Tuple):
        return any(holds_images(part) for part in space.spaces)
    return is_image(space)
