"""The counters of a run, and which of its centres is the best: part of its state."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from esker.config.options import StopOptions

CERTAIN = 20  # episodes of the last centres by which a new best is judged


@dataclass
class Progress:
    """The counters of a run.

    A maximum over noisy readings picks lucky ones. So a centre is judged by its own episodes together with those of the
    centres just before it, `CERTAIN` in all: it becomes the best if the lower end of their mean (one standard error below
    it) is the highest so far. Until that many episodes were seen, the newest centre is the best, with its own mean.
    """

    env_steps: int = 0
    episodes: int = 0
    discarded_steps: int = 0
    wall_time: float = 0.0
    best_return: float | None = None  # the mean by which it was judged
    best_generation: int | None = None
    goal_streak: int = 0
    episode_cap: int | None = None
    best_bound: float | None = None  # the lower end of that mean; None: of too few episodes to last
    recent: list[list[float]] = field(default_factory=list)  # returns of the last centres, oldest first

    @property
    def training_steps(self) -> int:
        """Steps in the replay buffer, which only the algorithms with gradients have."""
        return 0

    def improves(self, returns: Sequence[float], certain: int = CERTAIN) -> bool:
        """Whether a centre with these returns would be the best so far."""
        window = [value for part in self._window(returns, certain) for value in part]
        if not all(map(math.isfinite, returns)):
            return False
        return self.best_bound is None or (len(window) >= certain and lower_bound(window) > self.best_bound)

    def count_center(self, config: StopOptions, generation: int, returns: Sequence[float], certain: int = CERTAIN) -> None:
        """Take the centre's returns of a generation in: is it the best, does it reach the goal?"""
        improves, self.recent = self.improves(returns, certain), self._window(returns, certain)
        if improves:
            window = [value for part in self.recent for value in part]
            enough = len(window) >= certain
            self.best_return, self.best_generation = statistics.fmean(window if enough else returns), generation
            self.best_bound = lower_bound(window) if enough else None
        self.goal_streak = streak(self.goal_streak, statistics.fmean(returns), config.goal)

    def _window(self, returns: Sequence[float], certain: int) -> list[list[float]]:
        """The newest readings that make up enough episodes; those of failed centres are left out."""
        finite = [float(value) for value in returns if math.isfinite(value)]
        parts = [*self.recent, finite] if finite else list(self.recent)
        while len(parts) > 1 and sum(map(len, parts[1:])) >= certain:
            parts = parts[1:]
        return parts


def streak(before: int, reading: float, goal: float | None) -> int:
    """How many readings in a row have reached the goal, this one included."""
    return before + 1 if goal is not None and reading >= goal else 0


def lower_bound(values: Sequence[float]) -> float:
    """The mean less one standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.fmean(values) - error
