"""The seam between slots on a device and their simulator: n worlds as tensors, one a row, all stepped together.

A custom world is made by `module:make_world`, called as `make_world(rows, device, **env_kwargs)`, and has these
attributes and methods. See docs/gpu.md for one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


class Starts:
    """What is drawn from Gymnasium's generator of each seed, one row a seed; members of a pair share theirs.

    Thousands of generators take the CPU a tenth of a second, so those of the next generation are drawn while the device
    steps this one's episodes.
    """

    MOST = 1 << 18  # starts that are kept

    def __init__(self, draw: Callable[[np.random.Generator], Any]) -> None:
        self._draw = draw
        self._pool = ThreadPoolExecutor(1)
        self._ahead: dict[int, NDArray[Any]] = {}

    def expect(self, seeds: Seeds) -> None:
        """Draw what will soon be taken."""
        if len(self._ahead) > self.MOST:  # what was expected and never taken
            self._ahead.clear()
        self._pool.submit(lambda: self._ahead.update((seed, self._one(seed)) for seed in np.unique(seeds).tolist()))

    def take(self, seeds: Seeds) -> NDArray[Any]:
        """The starts of some episodes."""
        different, places = np.unique(seeds, return_inverse=True)
        ready = [(seed, self._ahead.pop(seed, None)) for seed in different.tolist()]
        return np.stack([self._one(seed) if drawn is None else drawn for seed, drawn in ready])[places]

    def _one(self, seed: int) -> NDArray[Any]:
        return np.asarray(self._draw(seeding.np_random(seed)[0]))
