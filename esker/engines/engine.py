"""The seam between algorithms and engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from esker.engines.plan import Plan
from esker.noise.table import NoiseTable
from esker.tasks.task import Job, Result, Task, silent_board


@dataclass(frozen=True)
class Pulse:
    """Progress of the current generation: steps so far, and items done of all, where that is known."""

    steps: int
    done: int = 0
    of: int | None = None
    unit: str = "episodes"


class Engine(Protocol):
    """Evaluates the items of a plan, somewhere."""

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Return when the plan is complete. A permanent failure raises RunError."""
        ...

    def close(self) -> None:
        """End every process and free what is shared."""
        ...


class InlineEngine:
    """Everything in the caller's process: for debugging, and for evaluations too short to be worth shipping."""

    def __init__(self, task: Task, table: NoiseTable | None) -> None:
        self._board = silent_board()
        self._evaluator = task.open(table, self._board)
        self._plan: Plan | None = None
        self._before = 0

    def pulse(self) -> Pulse | None:
        """Progress of the current generation; called from another thread."""
        plan = self._plan
        return None if plan is None else Pulse(self._board[0] - self._before, len(plan.results), plan.known)

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Evaluate the plan's items one slot-full at a time."""
        self._plan, self._before = plan, self._board[0]

        def take(free: int, busy: int) -> list[int] | None:
            if plan.complete is not None:
                return None
            return plan.take(free)

        while plan.complete is None:  # a plan that grows while its last items are under way is entered again
            plan.dropped_steps += self._evaluator.evaluate(job, take, plan.add)
        self._plan = None

    def close(self) -> None:
        """Close the environments."""
        self._evaluator.close()


__all__ = ["Engine", "InlineEngine", "Pulse", "Result"]
