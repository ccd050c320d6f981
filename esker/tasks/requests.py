"""The hybrids' requests to their workers, and the replies to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from esker.noise.directions import Vector

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Training:
    """Improve an actor by gradients before it is rolled out: `updates` updates on this critic, with a fresh optimizer."""

    critic: Vector
    updates: int
    key: int
    replay_count: int


@dataclass(frozen=True)
class Rollout:
    """One episode for each seed; without parameters, actions are random."""

    seeds: tuple[int, ...]
    parameters: Vector | None
    record: bool = True


@dataclass(frozen=True)
class Trial:
    """One individual: train it if asked to, then roll it out. `name` is for messages."""

    name: str
    episodes: Rollout
    training: Training | None = None


@dataclass(frozen=True)
class TrialResult:
    """What became of an individual; `parameters` are those that were rolled out."""

    parameters: Vector | None
    returns: list[float]
    lengths: list[int]
    rows: NDArray[np.float32] | None
    actor_loss: float | None = None  # mean over its training, where it was trained

    @property
    def fitness(self) -> float:
        """The mean return."""
        return float(np.mean(self.returns))


@dataclass(frozen=True)
class CriticWork:
    """Train critics from this state with this bootstrap actor. Workers keep nothing, so any of them can do it."""

    actor: Vector
    updates: int
    key: int
    replay_count: int
    state: Arrays


@dataclass(frozen=True)
class CriticDone:
    """The critics' whole state after the work, and the mean loss over it."""

    state: Arrays
    loss: float


@dataclass(frozen=True)
class Failed:
    """The request failed."""

    error: str
    trace: str


Request = Trial | CriticWork
Reply = TrialResult | CriticDone | Failed
