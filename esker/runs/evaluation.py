"""What an evaluation found."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Evaluation:
    """Returns and lengths of some episodes of one policy."""

    returns: list[float]
    lengths: list[int]
    checkpoint: int

    @property
    def episodes(self) -> int:
        """How many episodes there were."""
        return len(self.returns)

    @property
    def mean(self) -> float:
        """The mean return."""
        return statistics.fmean(self.returns)

    @property
    def std(self) -> float:
        """The standard deviation of the returns."""
        return statistics.pstdev(self.returns)

    @property
    def median(self) -> float:
        """The median return."""
        return statistics.median(self.returns)

    @property
    def length_mean(self) -> float:
        """The mean length of an episode."""
        return statistics.fmean(self.lengths)

    def summary(self) -> dict[str, Any]:
        """The numbers that `esker eval --json` prints."""
        return {
            "episodes": self.episodes,
            "mean": self.mean,
            "std": self.std,
            "min": min(self.returns),
            "max": max(self.returns),
            "median": self.median,
            "length_mean": self.length_mean,
            "checkpoint": self.checkpoint,
        }

    def __str__(self) -> str:
        return f"mean return {self.mean:,.2f} ± {self.std:,.2f} over {self.episodes} episodes, checkpoint {self.checkpoint}"


class Evaluated(NamedTuple):
    """An evaluation, and notices about what had to be repaired for it. `mean`, `returns` and so on are the evaluation's."""

    evaluation: Evaluation
    notices: list[str]

    @property
    def returns(self) -> list[float]:
        """The return of every episode."""
        return self.evaluation.returns

    @property
    def mean(self) -> float:
        """The mean return."""
        return self.evaluation.mean

    @property
    def std(self) -> float:
        """The standard deviation of the returns."""
        return self.evaluation.std

    @property
    def median(self) -> float:
        """The median return."""
        return self.evaluation.median

    def summary(self) -> dict[str, Any]:
        """The numbers that `esker eval --json` prints."""
        return self.evaluation.summary()
