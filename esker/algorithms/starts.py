"""Several starts: a run begins more than once, each time elsewhere, and goes on from the start that came furthest.

Which gait a policy ends with is often decided in its first generations, by chance. A few short starts cost little
against a whole run, and the best of them is rarely a bad one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from esker.algorithms.snapshot import Snapshot

BEST = "start."  # before the names of the best start's arrays


@dataclass
class Starts:
    """Which start a run is in, and the best of those that have ended."""

    count: int
    steps: int  # environment steps of each
    number: int = 1  # the start that runs; one more than there are once the best was chosen
    begun: int = 0  # environment steps that were done when it began
    best: Snapshot | None = None
    best_number: int = 1
    best_score: float = -np.inf

    @property
    def several(self) -> bool:
        """Whether there is more than one."""
        return self.count > 1

    @property
    def current(self) -> int:
        """The start whose policy is trained."""
        return self.number if self.number <= self.count else self.best_number

    def over(self, env_steps: int) -> bool:
        """Whether the start that runs has had its steps."""
        return self.several and self.number <= self.count and env_steps - self.begun >= self.steps

    def end(self, score: float, env_steps: int, place: Snapshot) -> Snapshot | None:
        """End a start with its score, and keep it if it is the best; returns the best after the last, else None."""
        if self.best is None or score > self.best_score:
            self.best, self.best_number, self.best_score = place, self.number, score
        self.number, self.begun = self.number + 1, env_steps
        if self.number <= self.count:
            return None
        chosen, self.best = self.best, None
        return chosen

    def described(self, score: float) -> str:
        """What a start that has just ended came to."""
        ended = f"start {self.number - 1} of {self.count} came to {score:,.1f}"
        if self.number > self.count:
            return f"{ended}; training goes on with start {self.best_number} ({self.best_score:,.1f})"
        return f"{ended}; the best so far is start {self.best_number} ({self.best_score:,.1f})"

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and values for a snapshot of the run; none if there is one start only."""
        if not self.several:
            return {}, {}
        values = {name: value for name, value in asdict(self).items() if name not in ("count", "steps", "best")}
        values["best_score"] = None if self.best_score == -np.inf else self.best_score
        if self.best is None:
            return {}, {"starts": values}
        arrays = {BEST + name: array for name, array in self.best.arrays.items()}
        return arrays, {"starts": values | {"best": {"generation": self.best.generation, **self.best.values}}}

    def load(self, snapshot: Snapshot) -> None:
        """Continue from a run's snapshot."""
        values = dict(snapshot.values.get("starts", {}))
        best = values.pop("best", None)
        for name, value in values.items():
            setattr(self, name, -np.inf if value is None else value)
        self.best = None
        if best is not None:
            arrays = {name.removeprefix(BEST): array for name, array in snapshot.arrays.items() if name.startswith(BEST)}
            self.best = Snapshot(best.pop("generation"), arrays, best)
