"""The counters of a run, and which of its centres is the best: part of its state."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from esker.config.options import StopOptions

CERTAIN = 20  # episodes of the last centres by which a new best is judged
STEADY = 100  # by which a second candidate is: among hundreds of means of 20 some are lucky, but these come late


@dataclass
class Progress:
    """The counters of a run.

    A maximum over noisy readings picks lucky ones. So a centre is judged by its own episodes together with those of the
    centres just before it, `CERTAIN` in all: it becomes the best if the lower end of their mean (one standard error below
    it) is the highest so far. Until that many episodes were seen, the newest centre is the best, with its own mean.

    Of the centres that have a snapshot anyway, the one with the highest lower end over `STEADY` episodes is remembered too:
    the two compete when the run ends (see `conclude`).
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
    steady_generation: int | None = None
    steady_bound: float | None = None

    @property
    def training_steps(self) -> int:
        """Steps in the replay buffer, which only the algorithms with gradients have."""
        return 0

    @property
    def candidates(self) -> set[int]:
        """The generations whose snapshots compete when the run ends."""
        return {generation for generation in (self.best_generation, self.steady_generation) if generation is not None}

    def improves(self, returns: Sequence[float], certain: int = CERTAIN) -> bool:
        """Whether a centre with these returns would be the best so far."""
        window = newest(self._with(returns), certain)
        if not usable(returns):
            return False
        return self.best_bound is None or (len(window) >= certain and lower_bound(window) > self.best_bound)

    def steadies(self, returns: Sequence[float]) -> bool:
        """Whether a centre with these returns would be the best so far over more episodes."""
        window = newest(self._with(returns), STEADY)
        if len(window) < STEADY or not usable(returns):
            return False
        return self.steady_bound is None or lower_bound(window) > self.steady_bound

    def count_center(
        self, config: StopOptions, generation: int, returns: Sequence[float], certain: int = CERTAIN, snapshot: bool = False
    ) -> None:
        """Take the centre's returns of a generation in: is it the best, does it reach the goal?

        `snapshot`: whether it has one, and may be the second candidate.
        """
        improves, steadies = self.improves(returns, certain), snapshot and self.steadies(returns)
        self.recent = last_parts(self._with(returns), certain if certain < CERTAIN else STEADY)
        window = newest(self.recent, certain)
        if improves:
            enough = len(window) >= certain
            self.best_return, self.best_generation = statistics.fmean(window) if enough else reading(returns), generation
            self.best_bound = lower_bound(window) if enough else None
        if steadies:
            self.steady_generation, self.steady_bound = generation, lower_bound(newest(self.recent, STEADY))
        self.goal_streak = streak(self.goal_streak, reading(returns), config.goal)

    def _with(self, returns: Sequence[float]) -> list[list[float]]:
        """The readings so far and this one; what is not finite, of failed centres, is left out."""
        finite = [float(value) for value in returns if math.isfinite(value)]
        return [*self.recent, finite] if finite else list(self.recent)


def usable(returns: Sequence[float]) -> list[float]:
    """The returns of a centre's episodes that did not fail; none where half of them or more did."""
    finite = [float(value) for value in returns if math.isfinite(value)]
    return finite if 2 * len(finite) > len(returns) else []


def reading(returns: Sequence[float]) -> float:
    """What a centre's episodes say of it: the mean of the usable ones; NaN where there are none."""
    return statistics.fmean(values) if (values := usable(returns)) else math.nan


def last_parts(parts: Sequence[list[float]], episodes: int) -> list[list[float]]:
    """The newest readings that make up so many episodes, or all."""
    first, seen = len(parts), 0
    while first > 0 and seen < episodes:
        first -= 1
        seen += len(parts[first])
    return list(parts[first:])


def newest(parts: Sequence[list[float]], episodes: int) -> list[float]:
    """The returns of the newest readings that make up so many episodes, or of all."""
    return [value for part in last_parts(parts, episodes) for value in part]


def streak(before: int, reading: float, goal: float | None) -> int:
    """How many readings in a row have reached the goal, this one included."""
    return before + 1 if goal is not None and reading >= goal else 0


def lower_bound(values: Sequence[float]) -> float:
    """The mean less one standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.fmean(values) - error
