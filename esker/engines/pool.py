"""A pool of worker processes that handle requests in any order; lost requests are sent again elsewhere.

Unlike the engine of a generation, a pool has no barrier: any idle worker gets the next request. Waiting blocks on
the workers' connections, so no core is spent on polling.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Protocol

import cloudpickle

from esker.engines.supervisor import ATTEMPTS, GRACE, START, CannotStart, Supervisor, WorkerProcess
from esker.errors import RunError
from esker.learners.rows import SharedRows
from esker.tasks.hybrid import HybridTask, HybridWorker
from esker.tasks.requests import CriticWork, Failed, Reply, Request, Trial

Kind = str  # "actor" or "critic"


class Pool(Protocol):
    """Handles requests."""

    def idle(self, kind: Kind) -> int:
        """How many workers of a kind have nothing to do."""
        ...

    def submit(self, request: Request, kind: Kind = "actor") -> int:
        """Hand a request to an idle worker; returns its ticket."""
        ...

    def wait(self) -> list[tuple[int, Reply]]:
        """Block until there is a reply, or more workers are idle. Permanent failures raise RunError."""
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
        self.worker: HybridWorker = task.open(rows, [0])
        self._replies: deque[tuple[int, Reply]] = deque()
        self._tickets = 0

    def idle(self, kind: Kind) -> int:
        """There is one of each kind."""
        return 0 if self._replies else 1

    def submit(self, request: Request, kind: Kind = "actor") -> int:
        """Do it now."""
        self._tickets += 1
        self._replies.append((self._tickets, checked(request, self.worker.handle(request))))
        return self._tickets

    def wait(self) -> list[tuple[int, Reply]]:
        """The replies since the last time."""
        replies = list(self._replies)
        self._replies.clear()
        return replies

    def close(self) -> None:
        """Close the environment."""
        self.worker.close()


class PoolWorker(WorkerProcess):
    """One worker process, and the request that it has."""

    def __init__(self, supervisor: Supervisor, row: int, kind: Kind, setup: PoolSetup) -> None:
        super().__init__(supervisor, row)
        self.kind = kind
        self.work: tuple[int, Request] | None = None
        self.send(setup)

    def give(self, ticket: int, request: Request) -> None:
        """Send a request."""
        self.work = ticket, request
        self.progress_at = time.monotonic()
        self.send(request)


class LocalPool:
    """Worker processes on this machine: a number of each kind."""

    def __init__(
        self, task: HybridTask, rows: SharedRows, kinds: Mapping[Kind, int], step_timeout: float | None = None
    ) -> None:
        count = sum(kinds.values())
        self.step_timeout = step_timeout
        self._setup = PoolSetup(list(sys.path), cloudpickle.dumps(task), (rows.descriptor, rows.width))
        self._supervisor = Supervisor("esker.engines.pool_worker", count, 1, self._setup.path, [rows.descriptor])
        self._losses: Counter[int] = Counter()
        self._tickets = 0
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
        """Hand a request to an idle worker; returns its ticket."""
        worker = next(w for w in self._workers.values() if w.kind == kind and w.work is None)
        self._tickets += 1
        worker.give(self._tickets, request)
        return self._tickets

    def wait(self) -> list[tuple[int, Reply]]:
        """Block until there is a reply."""
        replies: list[tuple[int, Reply]] = []
        while not replies and any(worker.work for worker in self._workers.values()):
            for connection in wait(list(self._workers), timeout=self._supervisor.patience(self.step_timeout)):
                worker = self._workers[connection]  # type: ignore[index]
                try:
                    reply: Reply = worker.connection.recv()
                except (EOFError, OSError):
                    self._lost(worker)
                    continue
                if worker.work is None:  # it could not even start
                    raise CannotStart(f"a worker could not start: {getattr(reply, 'error', reply)}")
                (ticket, request), worker.work = worker.work, None
                replies.append((ticket, checked(request, reply)))
            if self.step_timeout is not None:
                self._watch(self.step_timeout)
            for stopped in self._supervisor.found_stopped(list(self._workers.values())):
                self._lost(stopped, "the worker process was stopped")
        return replies

    def _start(self, kind: Kind, number: int) -> PoolWorker:
        self._supervisor.clear(number)
        worker = PoolWorker(self._supervisor, number, kind, self._setup)
        self._workers[worker.connection] = worker
        return worker

    def _lost(self, worker: PoolWorker, why: str | None = None) -> None:
        """A worker died: start another and ask it again, three times at most."""
        del self._workers[worker.connection]
        ended = worker.end(0.0 if why else GRACE)
        why = why or ended
        name = name_of(worker.work[1]) if worker.work else "an idle worker"
        ticket = worker.work[0] if worker.work else 0
        self._losses[ticket] += 1
        if self._losses[ticket] >= ATTEMPTS:
            raise RunError(f"{name}: {why}, {ATTEMPTS} times in a row")
        replacement = self._start(worker.kind, worker.row)
        if worker.work:
            replacement.give(*worker.work)

    def _watch(self, limit: float) -> None:
        """Kill workers that have not finished a step in time; a time-out never becomes a fitness."""
        now = time.monotonic()
        for worker in list(self._workers.values()):
            progress = (self._supervisor.board[worker.row],)
            if progress == (0,) and worker.work is not None:  # it is still starting
                if now - worker.progress_at > limit + START:
                    self._lost(worker, f"starting it took longer than {limit + START:g} s")
            elif progress != worker.progress or worker.work is None:
                worker.progress, worker.progress_at = progress, now
            elif now - worker.progress_at > limit:
                self._lost(worker, f"a step took longer than {limit:g} s")

    def close(self) -> None:
        """End the workers and free what they shared."""
        self._supervisor.close(self._workers.values())
        self._workers.clear()


def ask_all(pool: Pool, requests: Sequence[Request], aside: Callable[[int, Reply], None] | None = None) -> list[Reply]:
    """The replies to some requests, in their order, by however many actors there are; others' replies go `aside`."""
    waiting, tickets = deque(enumerate(requests)), {}
    replies: dict[int, Reply] = {}
    while len(replies) < len(requests):
        while waiting and pool.idle("actor"):
            place, request = waiting.popleft()
            tickets[pool.submit(request)] = place
        for ticket, reply in pool.wait():
            if ticket in tickets:
                replies[tickets.pop(ticket)] = reply
            elif aside is not None:
                aside(ticket, reply)
    return [replies[place] for place in range(len(requests))]


def name_of(request: Request) -> str:
    """Whose work a request is."""
    return request.name if isinstance(request, Trial) else "the critic"


def checked(request: Request, reply: Reply) -> Reply:
    """The reply; a failure raises RunError with the name of what failed."""
    if isinstance(reply, Failed):
        raise RunError(f"{name_of(request)}: {reply.error}\n{reply.trace}".rstrip())
    return reply


__all__ = ["CriticWork", "InlinePool", "LocalPool", "Pool", "ask_all"]
