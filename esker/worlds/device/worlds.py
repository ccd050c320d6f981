"""The seam between slots on a device and their simulator: n worlds as tensors, one a row, all stepped together.

A custom world is made by `module:make_world`, called as `make_world(rows, device, **env_kwargs)`, and has these
attributes and methods. See docs/gpu.md for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from gymnasium.utils import seeding
from numpy.typing import NDArray

Seeds = NDArray[np.int64]


class Stepped(NamedTuple):
    """What one step of all rows gives; `terminated` None means that no episode ever ends before its limit."""

    observations: torch.Tensor  # (rows, *shape)
    rewards: torch.Tensor  # (rows,)
    terminated: torch.Tensor | None  # (rows,), bool


class DeviceWorlds(Protocol):
    """Many environments as rows of tensors on a device."""

    limit: int | None  # steps after which an episode is truncated; the caller counts them

    def reset(self, rows: torch.Tensor, seeds: Seeds) -> torch.Tensor:
        """Begin an episode in each of some rows, by its seed; returns their first observations. The others stay."""
        ...

    def step(self, actions: torch.Tensor) -> Stepped:
        """Step all rows with an action each; a row whose episode is over may be stepped until it is reset."""
        ...


MakeWorld = Callable[..., DeviceWorlds]  # called as make_world(rows, device, **env_kwargs)


def starts(draw: Callable[[np.random.Generator], Any], seeds: Seeds) -> NDArray[Any]:
    """What is drawn from Gymnasium's generator of each seed, one row a seed; members of a pair share theirs."""
    different, places = np.unique(seeds, return_inverse=True)
    return np.stack([draw(seeding.np_random(seed)[0]) for seed in different.tolist()])[places]
