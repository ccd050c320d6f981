"""A pool of worker processes that answer requests in any order; lost requests are asked again elsewhere.

Unlike the engine of a generation, a pool knows no barrier: whoever is idle gets the next request. Waiting blocks on
the workers' connections, so no core is spent on polling.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Protocol

import cloudpickle

from esker.engines.local import ATTEMPTS, LOOK_EVERY, SINGLE_THREAD, START, CannotStart, _cause, _is_stopped
from esker.errors import RunError
from esker.learners.rows import SharedRows
from esker.noise.table import anonymous_memory
from esker.system.lifeline import inherited
from esker.tasks.hybrid import HybridTask, Workbench
from esker.tasks.requests import Answer, CriticWork, Failed, Request, Trial

Kind = str  # "actor" or "critic"


class Pool(Protocol):
    """Answers requests, somewhere."""

    def idle(self, kind: Kind) -> int:
        """How many workers of a kind have nothing to do."""
        ...

    def submit(self, request: Request, kind: Kind = "actor") -> int:
        """Hand a request to an idle worker; answers its ticket."""
        ...

    def wait(self) -> list[tuple[int, Answer]]:
        """Block until something is answered, or more workers are idle. What cannot be mended raises RunError."""
        ...

    def close(self) -> None:
        """End every process."""
        ...


@dataclass(frozen=True)
class PoolSetup:
    """What a worker is started with; `task` is cloudpickled, and loaded only once `path` is in place."""

    path: list[str]
    task: bytes
    rows: tuple[int, int]


class InlinePool:
    """Everything in the caller's process, at once."""

    def __init__(self, task: HybridTask, rows: SharedRows) -> None:
        self.bench: Workbench = task.open(rows, [0])
        self._answers: deque[tuple[int, Answer]] = deque()
        self._tickets = 0

    def idle(self, kind: Kind) -> int:
        """There is one of each kind."""
        return 0 if self._answers else 1

    def submit(self, request: Request, kind: Kind = "actor") -> int:
        """Do it now."""
        self._tickets += 1
        self._answers.append((self._tickets, checked(request, self.bench.answer(request))))
        return self._tickets

    def wait(self) -> list[tuple[int, Answer]]:
        """The answers since the last time."""
        answers = list(self._answers)
        self._answers.clear()
        return answers

    def close(self) -> None:
        """Close the environment."""
        self.bench.close()


class PoolWorker:
    """One worker process as its pool sees it."""

    def __init__(self, kind: Kind, number: int, board_fd: int, life_fd: int, setup: PoolSetup) -> None:
        self.connection, theirs = Pipe()
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "esker.engines.pool_worker",
                *map(str, (theirs.fileno(), life_fd, board_fd, number)),
            ],
            pass_fds=[theirs.fileno(), life_fd, board_fd, setup.rows[0]],
            env=os.environ | SINGLE_THREAD | inherited(setup.path),
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the pool's to handle
        )
        theirs.close()
        self.kind = kind
        self.number = number
        self.work: tuple[int, Request] | None = None
        self.progress = 0
        self.progress_at = time.monotonic()
        self.stopped = False
        with contextlib.suppress(OSError):  # a dead worker's connection ends, and `wait` finds that out
            self.connection.send(setup)

    def give(self, ticket: int, request: Request) -> None:
        """Send a request."""
        self.work = ticket, request
        self.progress_at = time.monotonic()
        with contextlib.suppress(OSError):
            self.connection.send(request)


class LocalPool:
    """Worker processes on this machine, so many of each kind."""

    def __init__(
        self, task: HybridTask, rows: SharedRows, kinds: Mapping[Kind, int], step_timeout: float | None = None
    ) -> None:
        count = sum(kinds.values())
        self.step_timeout = step_timeout
        self._setup = PoolSetup(list(sys.path), cloudpickle.dumps(task), (rows.descriptor, rows.width))
        self._board_fd = anonymous_memory(count * 8)
        self._board = memoryview(mmap.mmap(self._board_fd, count * 8)).cast("q")
        self._life, self._life_end = os.pipe()  # workers read it to its end, which is the end of this process
        self._losses: Counter[int] = Counter()
        self._tickets = 0
        self._looked_at = time.monotonic()
        self._workers: dict[Connection, PoolWorker] = {}
        for number, kind in enumerate(kind for kind, many in kinds.items() for _ in range(many)):
            self._start(kind, number)

    @property
    def pids(self) -> dict[int, Kind]:
        """The worker processes and their kinds."""
        return {worker.process.pid: worker.kind for worker in self._workers.values()}

    def idle(self, kind: Kind) -> int:
        """How many workers of a kind have nothing to do."""
        return sum(worker.kind == kind and worker.work is None for worker in self._workers.values())

    def submit(self, request: Request, kind: Kind = "actor") -> int:
        """Hand a request to an idle worker; answers its ticket."""
        worker = next(w for w in self._workers.values() if w.kind == kind and w.work is None)
        self._tickets += 1
        worker.give(self._tickets, request)
        return self._tickets

    def wait(self) -> list[tuple[int, Answer]]:
        """Block until something is answered."""
        answers: list[tuple[int, Answer]] = []
        while not answers and any(worker.work for worker in self._workers.values()):
            patience = LOOK_EVERY if self.step_timeout is None else min(max(self.step_timeout / 4, 0.01), LOOK_EVERY)
            for connection in wait(list(self._workers), timeout=patience):
                worker = self._workers[connection]  # type: ignore[index]
                try:
                    answer: Answer = worker.connection.recv()
                except (EOFError, OSError):
                    self._lost(worker)
                    continue
                if worker.work is None:  # it could not even start
                    raise CannotStart(f"a worker could not start: {getattr(answer, 'error', answer)}")
                (ticket, request), worker.work = worker.work, None
                answers.append((ticket, checked(request, answer)))
            if self.step_timeout is not None:
                self._watch(self.step_timeout)
            if time.monotonic() - self._looked_at > LOOK_EVERY:
                self._replace_stopped()
        return answers

    def _start(self, kind: Kind, number: int) -> PoolWorker:
        self._board[number] = 0
        worker = PoolWorker(kind, number, self._board_fd, self._life, self._setup)
        self._workers[worker.connection] = worker
        return worker

    def _lost(self, worker: PoolWorker, why: str | None = None) -> None:
        """A worker died: start another and ask it again, three times at most."""
        del self._workers[worker.connection]
        worker.connection.close()
        worker.process.kill()
        why = why or _cause(worker.process.wait())
        name = name_of(worker.work[1]) if worker.work else "an idle worker"
        ticket = worker.work[0] if worker.work else 0
        self._losses[ticket] += 1
        if self._losses[ticket] >= ATTEMPTS:
            raise RunError(f"{name}: {why}, {ATTEMPTS} times in a row")
        replacement = self._start(worker.kind, worker.number)
        if worker.work:
            replacement.give(*worker.work)

    def _watch(self, limit: float) -> None:
        """Kill workers that have not finished a step in time; a time-out never becomes a fitness."""
        now = time.monotonic()
        for worker in list(self._workers.values()):
            progress = self._board[worker.number]
            if progress == 0 and worker.work is not None:  # it is still starting
                if now - worker.progress_at > limit + START:
                    self._lost(worker, f"starting it took longer than {limit + START:g} s")
            elif progress != worker.progress or worker.work is None:
                worker.progress, worker.progress_at = progress, now
            elif now - worker.progress_at > limit:
                self._lost(worker, f"a step took longer than {limit:g} s")

    def _replace_stopped(self) -> None:
        """Replace workers that someone stopped (SIGSTOP): they would hold the run for ever."""
        self._looked_at = time.monotonic()
        for worker in list(self._workers.values()):
            stopped = _is_stopped(worker.process.pid)
            if stopped and worker.stopped:
                self._lost(worker, "the worker process was stopped")
            worker.stopped = stopped

    def close(self) -> None:
        """End the workers and free what they shared."""
        for worker in self._workers.values():
            worker.process.kill()
            worker.process.wait()
            worker.connection.close()
        self._workers.clear()
        for descriptor in (self._life, self._life_end, self._board_fd):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def ask_all(pool: Pool, requests: Sequence[Request], aside: Callable[[int, Answer], None] | None = None) -> list[Answer]:
    """The answers to some requests, in their order, by however many actors there are; others' answers go `aside`."""
    waiting, tickets = deque(enumerate(requests)), {}
    answers: dict[int, Answer] = {}
    while len(answers) < len(requests):
        while waiting and pool.idle("actor"):
            place, request = waiting.popleft()
            tickets[pool.submit(request)] = place
        for ticket, answer in pool.wait():
            if ticket in tickets:
                answers[tickets.pop(ticket)] = answer
            elif aside is not None:
                aside(ticket, answer)
    return [answers[place] for place in range(len(requests))]


def name_of(request: Request) -> str:
    """Whose work a request is."""
    return request.name if isinstance(request, Trial) else "the critic"


def checked(request: Request, answer: Answer) -> Answer:
    """The answer; a failure raises RunError with the name of what failed."""
    if isinstance(answer, Failed):
        raise RunError(f"{name_of(request)}: {answer.error}\n{answer.trace}".rstrip())
    return answer


__all__ = ["CriticWork", "InlinePool", "LocalPool", "Pool", "ask_all"]
