"""An engine with user-written workers: the items of a plan go to the workers that ask the server for them."""

from __future__ import annotations

from typing import Protocol

from esker.engines.plan import Plan
from esker.engines.remote.server import WorkServer
from esker.tasks.task import Job


class Addressed(Protocol):
    """A task whose items have a member and a seed."""

    def address(self, item: int) -> tuple[int | None, int]: ...
    def evaluation_seed(self, generation: int, item: int) -> int: ...


class RemoteEngine:
    """Evaluates plans by the workers of a server, which stays open: its owner closes it."""

    def __init__(self, server: WorkServer, task: Addressed) -> None:
        self._server = server
        self._task = task

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Return when the plan is complete, however long workers take to come."""

        def address(item: int) -> tuple[int | None, int]:
            return self._task.address(item)[0], self._task.evaluation_seed(job.generation, item)

        self._server.evaluate_plan(job.population, plan, address)

    def close(self) -> None:
        """Nothing: the server continues with the next run, or ends with its owner."""
