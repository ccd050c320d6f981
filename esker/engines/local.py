"""The local engine: worker processes on this machine, fed with items and watched over.

Scheduling and faults never change a result, because every item is a pure function of its address: a lost worker's
items are simply evaluated again.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from esker.engines.engine import Pulse
from esker.engines.messages import BOARD_FIELDS, Broken, Drop, Finished, Items, Ready, Report, Setup
from esker.engines.packing import unpack
from esker.engines.plan import Plan
from esker.engines.sharing import Sharing, sharing_after
from esker.engines.supervisor import ATTEMPTS, GRACE, START, CannotStart, Supervisor, WorkerProcess
from esker.errors import RunError
from esker.noise.table import NoiseTable
from esker.tasks.task import Job, Task


class Worker(WorkerProcess):
    """One worker process, and what it has of the generation under way."""

    def __init__(self, supervisor: Supervisor, row: int) -> None:
        super().__init__(supervisor, row)
        self.sent = 0
        self.items: set[int] = set()
        self.ready = False
        self.wants = False
        self.in_generation = False
        self.farewells = 0  # of earlier generations, still to come


class LocalEngine:
    """Evaluates plans on worker processes; each owns some slots and one thread."""

    def __init__(
        self,
        task: Task,
        workers: int,
        table: NoiseTable | None = None,
        step_timeout: float | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        self.task = task
        self.step_timeout = step_timeout
        self._setup = Setup(list(sys.path), cloudpickle.dumps(task), (table.descriptor, table.size) if table else None)
        self._count = workers
        shared = [*descriptors, *([table.descriptor] if table else [])]
        self._supervisor = Supervisor("esker.engines.worker", workers, BOARD_FIELDS, self._setup.path, shared)
        self._board = self._supervisor.board
        self._bell, self._bell_button = os.pipe()
        self._sharing = Sharing()
        self._failed_starts = 0
        self._plan: Plan | None = None
        self._before = 0
        self._workers: dict[Connection, Worker] = {}
        self._ears = selectors.DefaultSelector()  # kept, since `multiprocessing.connection.wait` makes one at every call
        self._ears.register(self._bell, selectors.EVENT_READ)
        for row in range(workers):
            self._start(row)

    @property
    def pids(self) -> list[int]:
        """The worker processes."""
        return [worker.process.pid for worker in self._workers.values()]

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Evaluate the plan; return when it is complete and no worker is busy with it any more."""
        began = time.monotonic()
        self._attempts: Counter[int] = Counter()
        self._job = job
        self._plan, self._before = plan, self._steps()
        for worker in list(self._workers.values()):
            self._enter(worker, plan)
        while plan.complete is None:
            self._pump(plan)
        for worker in self._workers.values():
            self._send(worker, Drop())
            if not worker.items:  # it has nothing left of this generation: do not wait for its last message
                worker.in_generation = False
                worker.farewells += 1
        while any(worker.in_generation for worker in self._workers.values()):
            self._pump(plan)
        work = (time.monotonic() - began) * self._count / max(len(plan.results), 1)
        self._sharing = sharing_after((result.length for result in plan.results.values()), work)

    def pulse(self) -> Pulse | None:
        """Progress of the current generation; called from another thread."""
        plan = self._plan
        if plan is None or plan.complete is not None:
            return None
        return Pulse(max(0, self._steps() - self._before), len(plan.results), plan.known)  # a replaced worker starts at zero

    def _steps(self) -> int:
        return sum(self._board[row * BOARD_FIELDS] for row in range(self._count))

    def wake(self) -> None:
        """From another thread: the plan has changed, look at it."""
        os.write(self._bell_button, b".")

    def close(self) -> None:
        """End the workers and free what they shared."""
        self._supervisor.close(self._workers.values())
        self._workers.clear()
        self._ears.close()
        for descriptor in (self._bell, self._bell_button):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _start(self, row: int) -> Worker:
        self._supervisor.clear(row)
        worker = Worker(self._supervisor, row)
        self._workers[worker.connection] = worker
        self._ears.register(worker.connection, selectors.EVENT_READ, worker)
        self._send(worker, self._setup_of(row))
        return worker

    def _setup_of(self, row: int) -> Setup:
        """What the worker of a row is started with."""
        return self._setup

    def _enter(self, worker: Worker, plan: Plan) -> None:
        """Bring a worker into the generation, with its first items."""
        worker.in_generation = True
        worker.progress_at = time.monotonic()
        self._send(worker, self._job)
        worker.wants = True
        self._grant(worker, plan)

    def _send(self, worker: Worker, message: Any) -> None:
        worker.send(message)
        worker.sent += 1
        self._board[worker.row * BOARD_FIELDS + 2] = worker.sent

    def _grant(self, worker: Worker, plan: Plan) -> None:
        """Give a worker that wants items its fair share of what is unfinished: its slots full and some in reserve."""
        target = self._sharing.target(plan.unfinished, self._count, self.task.slots)
        items = plan.take(target - len(worker.items)) if target > len(worker.items) else []
        last = not (plan.waiting or plan.may_grow)
        if items or (last and worker.items):
            worker.items.update(items)
            worker.wants = False
            self._send(worker, Items(items, last))

    def _pump(self, plan: Plan) -> None:
        """Wait for messages of workers, and act on them."""
        for heard, _ in self._ears.select(self._supervisor.patience(self.step_timeout)):
            worker: Worker | None = heard.data
            if worker is None:
                os.read(self._bell, 4096)
                self._grant_all(plan)
                continue
            try:
                message = worker.connection.recv()
            except (EOFError, OSError):
                self._lost(worker, plan)
                continue
            self._hear(worker, message, plan)
        if self.step_timeout is not None:
            self._watch(plan)
        for stopped in self._supervisor.found_stopped(list(self._workers.values())):
            self._lost(stopped, plan, "the worker process was stopped")

    def _grant_all(self, plan: Plan) -> None:
        if plan.complete is None:
            for worker in list(self._workers.values()):
                if worker.wants:
                    self._grant(worker, plan)

    def _hear(self, worker: Worker, message: Any, plan: Plan) -> None:
        if isinstance(message, Ready):
            worker.ready = True
            worker.progress_at = time.monotonic()
            self._failed_starts = 0
        elif worker.farewells and isinstance(message, Report | Finished):  # it belongs to an earlier generation
            worker.farewells -= isinstance(message, Finished)
        elif isinstance(message, Report):
            results = unpack(message.results)
            worker.items.difference_update(result.item for result in results)
            worker.wants = worker.wants or message.wants
            plan.add(results)
            self._grant_all(plan)
        elif isinstance(message, Finished):
            worker.in_generation = False
            worker.items.clear()
            plan.dropped_steps += message.dropped
        elif isinstance(message, Broken):
            raise CannotStart(f"a worker could not start: {message.message}\n{message.trace}")

    def _lost(self, worker: Worker, plan: Plan, why: str | None = None) -> None:
        """A worker died: blame the item it was stepping, put its items back, start another in its place."""
        del self._workers[worker.connection]
        self._ears.unregister(worker.connection)
        ended = worker.end(0.0 if why else GRACE)
        why = why or ended
        blamed = self._board[worker.row * BOARD_FIELDS + 1]
        if not worker.ready:
            self._failed_starts += 1
            if self._failed_starts >= ATTEMPTS:
                raise CannotStart(f"workers cannot start: {why}, {ATTEMPTS} times in a row")
        elif blamed in worker.items:
            self._attempts[blamed] += 1
            if self._attempts[blamed] >= ATTEMPTS:
                where = self.task.describe(self._job.generation, blamed)
                raise RunError(f"{where}: {why}, {ATTEMPTS} times in a row")
        plan.put_back(worker.items)
        replacement = self._start(worker.row)
        if plan.complete is None:
            self._enter(replacement, plan)

    def _watch(self, plan: Plan) -> None:
        """Kill workers whose current step has not ended in time; a time-out never becomes a fitness."""
        assert self.step_timeout is not None
        now = time.monotonic()
        for worker in list(self._workers.values()):
            at = worker.row * BOARD_FIELDS
            progress = (self._board[at], self._board[at + 1])
            if not worker.ready:
                if now - worker.started_at > self.step_timeout + START:
                    self._lost(worker, plan, f"starting it took longer than {self.step_timeout + START:g} s")
            elif progress != worker.progress or not worker.items:
                worker.progress, worker.progress_at = progress, now
            elif now - worker.progress_at > self.step_timeout:
                self._lost(worker, plan, f"a step took longer than {self.step_timeout:g} s")
