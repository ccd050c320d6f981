"""The seam between engines and tasks: what a worker is given, and what it returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from esker.noise.directions import Vector
from esker.noise.population import Population
from esker.noise.table import NoiseTable
from esker.policies.normalizer import Normalizer, Sums

Take = Callable[[int, int], "list[int] | None"]
"""take(free, busy) -> new items, at most `free`; it waits only when nothing is busy. [] while nothing is busy: the
generation is over. None: drop what is busy, it is no longer needed."""
Board = Any  # a list or a memoryview of integers: steps taken, item being stepped
Give = Callable[[Sequence["Result"]], None]
LARGEST = 1e150  # of a fitness: the squares of a generation can be added up


def address_of(item: int, center: int, each: int) -> tuple[int | None, int]:
    """The member (None: the centre) and which of its evaluations an item is: first the centre's, then `each` per member."""
    return (None, item) if item < center else divmod(item - center, each)


def name_of(member: int | None) -> str:
    """A member in a message."""
    return "the centre" if member is None else f"member {member}"


def is_fitness(value: Any) -> Any:
    """Whether a number, or each of an array, can be learned from: finite, and not so large that sums overflow."""
    return abs(value) <= LARGEST


def unusable(total: float) -> str:
    """Why the return of an episode is no fitness."""
    what = "was too large" if math.isfinite(total) else "was not finite"
    return f"the return of the episode is {total}: a reward, an observation or an action {what}"


@dataclass(frozen=True)
class Job:
    """What a worker must know to evaluate any item of one generation."""

    population: Population
    normalizer: Normalizer | None = None
    episode_cap: int | None = None
    only_center: bool = False  # every item is an episode of the centre's, however many there are

    @property
    def generation(self) -> int:
        """The generation that is evaluated."""
        return self.population.generation

    @property
    def center(self) -> Vector:
        """The unperturbed parameters."""
        return self.population.center

    @classmethod
    def of_center(cls, center: Vector, normalizer: Normalizer | None = None, generation: int = 0) -> Job:
        """A job that evaluates a centre and no members; `generation` chooses the episodes."""
        return cls(Population(center, 0.0, generation, False, None, range(0)), normalizer)


class Result(NamedTuple):
    """One evaluated item. `fitness` is what the strategy is told, `total` the return; `error` says why there is none."""

    item: int
    fitness: float
    total: float
    length: int
    statistics: Sums | None = None  # the sum of observations and the sum of their squares, as two rows
    error: str | None = None
    trace: str = ""


class Evaluator(Protocol):
    """A task opened in one worker."""

    def evaluate(self, job: Job, take: Take, give: Give) -> int:
        """Evaluate items until `take` ends it; returns how many steps were dropped."""
        ...

    def close(self) -> None: ...


class Task(Protocol):
    """What members are evaluated on; shipped to every worker once."""

    @property
    def slots(self) -> int:
        """How many items a worker evaluates side by side."""
        ...

    def open(self, table: NoiseTable | None, board: Board) -> Evaluator:
        """Build the evaluator. `board[0]` counts its steps and `board[1]` names the item being stepped."""
        ...

    def describe(self, generation: int, item: int) -> str:
        """Where an item's work happened, for messages: environment, member, episode, seed."""
        ...


def silent_board() -> Board:
    """An unread board, for evaluation inside the caller's process."""
    return [0, 0]
