"""The local engine: worker processes on this machine, fed with items and watched over.

Scheduling and faults never change a result, because every item is a pure function of its address: a lost worker's
items are simply evaluated again.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cloudpickle

from esker.engines.engine import Pulse
from esker.engines.messages import BOARD_FIELDS, Broken, Drop, Finished, Items, Ready, Report, Setup
from esker.engines.packing import unpack
from esker.engines.plan import Plan
from esker.engines.sharing import Sharing, sharing_after
from esker.errors import RunError
from esker.noise.table import NoiseTable, anonymous_memory
from esker.system.lifeline import inherited
from esker.tasks.task import Job, Task

ATTEMPTS = 3  # an item whose worker is lost this often stops the run
START = 60.0  # seconds beyond the limit of a step that a worker may take to start and make its environments
LOOK_EVERY = 2.0  # seconds between two looks at whether a worker is stopped; the second such look ends it
SINGLE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")


class CannotStart(RunError):
    """The workers of this machine cannot start; another machine's may."""


class Worker:
    """One worker process as its engine sees it."""

    def __init__(self, row: int, rows: int, board_fd: int, life_fd: int, setup: Setup) -> None:
        self.connection, theirs = Pipe()
        descriptors = [theirs.fileno(), life_fd, board_fd] + ([setup.table[0]] if setup.table else [])
        numbers = [str(n) for n in (theirs.fileno(), life_fd, board_fd, row, rows)]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "esker.engines.worker", *numbers],
            pass_fds=descriptors,
            env=os.environ | SINGLE_THREAD | inherited(setup.path),
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the engine's to handle
        )
        theirs.close()
        self.row = row
        self.sent = 0
        self.items: set[int] = set()
        self.ready = False
        self.wants = False
        self.in_generation = False
        self.farewells = 0  # of earlier generations, still to come
        self.progress: tuple[int, int] = (0, 0)
        self.started_at = self.progress_at = time.monotonic()
        self.stopped = False


class LocalEngine:
    """Evaluates plans on worker processes; each owns some slots and one thread."""

    def __init__(self, task: Task, workers: int, table: NoiseTable | None = None, step_timeout: float | None = None) -> None:
        self.task = task
        self.step_timeout = step_timeout
        self._setup = Setup(list(sys.path), cloudpickle.dumps(task), (table.descriptor, table.size) if table else None)
        self._count = workers
        self._board_fd = anonymous_memory(workers * BOARD_FIELDS * 8)
        self._board = memoryview(mmap.mmap(self._board_fd, workers * BOARD_FIELDS * 8)).cast("q")
        self._life, self._life_end = os.pipe()  # workers read it to its end, which is the end of this process
        self._bell, self._bell_button = os.pipe()
        self._looked_at = time.monotonic()
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
            if not worker.items:  # it has nothing more to say of this generation: do not wait for its farewell
                worker.in_generation = False
                worker.farewells += 1
        while any(worker.in_generation for worker in self._workers.values()):
            self._pump(plan)
        work = (time.monotonic() - began) * self._count / max(len(plan.results), 1)
        self._sharing = sharing_after((result.length for result in plan.results.values()), work)

    def pulse(self) -> Pulse | None:
        """How far the generation under way is; asked from another thread."""
        plan = self._plan
        if plan is None or plan.complete is not None:
            return None
        return Pulse(max(0, self._steps() - self._before), len(plan.results), plan.known)  # a replaced worker counts anew

    def _steps(self) -> int:
        return sum(self._board[row * BOARD_FIELDS] for row in range(self._count))

    def wake(self) -> None:
        """From another thread: the plan has changed, look at it."""
        os.write(self._bell_button, b".")

    def close(self) -> None:
        """End the workers and free what they shared."""
        for worker in self._workers.values():
            worker.process.kill()
            worker.process.wait()
            worker.connection.close()
        self._workers.clear()
        self._ears.close()
        for descriptor in (self._life, self._life_end, self._bell, self._bell_button, self._board_fd):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _start(self, row: int) -> Worker:
        for field in range(BOARD_FIELDS):
            self._board[row * BOARD_FIELDS + field] = 0
        worker = Worker(row, self._count, self._board_fd, self._life, self._setup)
        self._workers[worker.connection] = worker
        self._ears.register(worker.connection, selectors.EVENT_READ, worker)
        self._send(worker, self._setup)
        return worker

    def _enter(self, worker: Worker, plan: Plan) -> None:
        """Bring a worker into the generation, with its first items."""
        worker.in_generation = True
        worker.progress_at = time.monotonic()
        self._send(worker, self._job)
        worker.wants = True
        self._grant(worker, plan)

    def _send(self, worker: Worker, message: Any) -> None:
        with contextlib.suppress(OSError):  # a dead worker's connection ends, and `_pump` finds that out
            worker.connection.send(message)
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
        """Wait for workers to say something, and act on it."""
        for heard, _ in self._ears.select(self._patience()):
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
        if time.monotonic() - self._looked_at > LOOK_EVERY:
            self._replace_stopped(plan)

    def _patience(self) -> float:
        return LOOK_EVERY if self.step_timeout is None else min(max(self.step_timeout / 4, 0.01), LOOK_EVERY)

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
        elif worker.farewells and isinstance(message, Report | Finished):  # it speaks of an earlier generation
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
        worker.connection.close()
        worker.process.kill()
        status = worker.process.wait()
        why = why or _cause(status)
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

    def _replace_stopped(self, plan: Plan) -> None:
        """Replace workers that someone stopped (SIGSTOP): they would hold the generation for ever."""
        self._looked_at = time.monotonic()
        for worker in list(self._workers.values()):
            stopped = _is_stopped(worker.process.pid)
            if stopped and worker.stopped:
                self._lost(worker, plan, "the worker process was stopped")
            worker.stopped = stopped


def _is_stopped(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):  # gone, or a system without /proc
        return False
    return state == "T"


def _cause(status: int) -> str:
    if status >= 0:
        return f"the worker process ended with status {status}"
    name = signal.Signals(-status).name
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"the worker process was ended by {name}{hint}"
