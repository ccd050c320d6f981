"""The seam between algorithms and engines."""

from __future__ import annotations

from typing import Protocol

from esker.engines.plan import Plan
from esker.noise.table import NoiseTable
from esker.tasks.task import Job, Result, Task, silent_board


class Engine(Protocol):
    """Evaluates the items of a plan, somewhere."""

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Return when the plan is complete. A failure that cannot be mended raises RunError."""
        ...

    def close(self) -> None:
        """End every process and free what is shared."""
        ...


class InlineEngine:
    """Everything in the caller's process: for debugging, and for evaluations too short to be worth shipping."""

    def __init__(self, task: Task, table: NoiseTable | None) -> None:
        self._evaluator = task.open(table, silent_board())

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Evaluate the plan's items one slot-full at a time."""

        def take(free: int, busy: int) -> list[int] | None:
            if plan.complete is not None:
                return None
            return plan.take(free)

        while plan.complete is None:  # a plan that grows while its last items are under way is entered again
            plan.dropped_steps += self._evaluator.evaluate(job, take, plan.add)

    def close(self) -> None:
        """Close the environments."""
        self._evaluator.close()


__all__ = ["Engine", "InlineEngine", "Result"]
