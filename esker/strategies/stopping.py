"""When a run of the CMA kind cannot improve any further where it is (Hansen 2009, "Benchmarking a BI-population CMA-ES")."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

TOLERANCE = 1e-12  # of fitness, and of sigma relative to where it began
CONDITION = 1e14
LONGEST = 20_000  # generations remembered


class History:
    """The best and the median fitness of past generations, the fitness range of the last, and whether they say to stop."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.best: list[float] = []
        self.median: list[float] = []
        self.range = float("inf")
        self.generations = 0

    def add(self, fitness: NDArray[np.float64]) -> None:
        """Remember a generation."""
        self.generations += 1
        self.best.append(float(fitness.max()))
        self.median.append(float(np.median(fitness)))
        self.range = float(fitness.max() - fitness.min())
        if len(self.best) > LONGEST:
            del self.best[0], self.median[0]

    def verdict(self, members: int) -> str | None:
        """Why to stop, or None."""
        window = 10 + ceil(30 * self.dimension / members)
        if len(self.best) >= window and self.range < TOLERANCE and np.ptp(self.best[-window:]) < TOLERANCE:
            return f"fitness has not changed in {window} generations"
        window = min(int(max(120 + 30 * self.dimension / members, 0.2 * self.generations)), LONGEST)
        if len(self.best) >= window and all(_stagnates(values[-window:]) for values in (self.best, self.median)):
            return f"fitness has not improved in {window} generations"
        return None

    def state_dict(self) -> dict[str, Any]:
        """What is remembered."""
        values = torch.tensor([self.best, self.median], dtype=torch.float64)
        return {"fitness": values, "range": self.range, "generations": self.generations}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`."""
        self.best, self.median = torch.as_tensor(state["fitness"]).tolist()
        self.range, self.generations = float(state["range"]), int(state["generations"])


def _stagnates(values: list[float]) -> bool:
    """Whether the last 30% are, by their median, no better than the first."""
    part = max(1, int(0.3 * len(values)))
    return bool(np.median(values[-part:]) <= np.median(values[:part]))
