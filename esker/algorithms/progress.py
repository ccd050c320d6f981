"""The counters of a run: part of its state, and what its stop conditions look at."""

from __future__ import annotations

import math
from dataclasses import dataclass

from esker.config.options import StopOptions


@dataclass
class Progress:
    """The counters of a run."""

    env_steps: int = 0
    episodes: int = 0
    discarded_steps: int = 0
    wall_time: float = 0.0
    best_return: float | None = None
    best_generation: int | None = None
    goal_streak: int = 0
    episode_cap: int | None = None

    @property
    def training_steps(self) -> int:
        """Steps in the replay buffer, which only the algorithms with gradients have."""
        return 0

    def improves(self, center_return: float) -> bool:
        """Whether a centre's return is the best so far."""
        return not math.isnan(center_return) and (self.best_return is None or center_return > self.best_return)

    def count_center(self, config: StopOptions, generation: int, center_return: float) -> None:
        """Take the centre's return of a generation in: is it the best, does it reach the goal?"""
        if self.improves(center_return):
            self.best_return, self.best_generation = center_return, generation
        reached = config.goal is not None and center_return >= config.goal
        self.goal_streak = self.goal_streak + 1 if reached else 0
