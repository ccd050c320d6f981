"""Native worlds of classic control: one formula steps all rows of a worker."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.utils import seeding

from esker.worlds.arrays import NumpyArrays
from esker.worlds.classic import CLASSIC, ClassicDefinition
from esker.worlds.worlds import Ended


class ClassicWorlds:
    """The classic control worlds of one worker, as columns of one array."""

    def __init__(self, name: str, options: dict[str, Any], rows: int, limit: int | None) -> None:
        self.definition: ClassicDefinition = CLASSIC[name](NumpyArrays(), **options)
        self.limit = limit
        self.state: Any = np.zeros((self.definition.variables, rows))

    def reset(self, row: int, seed: int) -> Any:
        """Begin an episode with the start that Gymnasium draws from this seed."""
        start = self.definition.start(seeding.np_random(seed)[0])
        self.state[:, row] = start
        return np.concatenate(self.definition.observe(start[:, None])).astype(np.float32)

    def step(self, actions: Any, count: int, observations: Any) -> tuple[list[float], list[Ended]]:
        """Step all rows at once; `info` is not produced."""
        state, rewards, terminated = self.definition.step(self.state[:, :count], np.asarray(actions))
        self.state[:, :count] = state
        columns = np.array(self.definition.observe(state), dtype=np.float32)
        observations[:count] = columns.T
        paid = [rewards] * count if isinstance(rewards, float) else rewards.tolist()
        ended = [] if terminated is None else [Ended(row) for row in np.flatnonzero(terminated).tolist()]
        return paid, ended

    def swap(self, row: int, other: int) -> None:
        """Let two rows change places."""
        self.state[:, [row, other]] = self.state[:, [other, row]]

    def close(self) -> None:
        """Nothing to close: memory is all they hold."""
