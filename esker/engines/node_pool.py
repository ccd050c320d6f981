"""A node of a cluster as the hybrids use it: worker processes with a copy of the run's replay rows, behind one Ray actor.

This file does not import Ray: `esker.engines.roster` makes the class an actor.
"""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from queue import SimpleQueue

from esker.engines.node import NodeSetup, Welcome, received
from esker.engines.pool import LocalPool
from esker.engines.supervisor import CannotStart
from esker.errors import RunError
from esker.learners.rows import Rows, SharedRows
from esker.tasks.requests import Failed, Request

ROWS_WITHIN = 120.0  # seconds for rows that were sent before a request to arrive


@dataclass(frozen=True)
class Unfit:
    """The workers of this node cannot start; another node's may."""

    why: str


class NodePool:
    """Opened by a pool, and ends with it. Every call of `handle` has its own worker process."""

    def __init__(self) -> None:
        self._welcome: Welcome | None = None
        self._free: SimpleQueue[LocalPool] = SimpleQueue()
        self._came = threading.Condition()
        self._pieces = 0
        self._rows: SharedRows | None = None

    def open(self, epoch: int, setup: NodeSetup, workers: int, slots: int | None) -> Welcome:
        """Start the workers, or return why this node cannot take part."""
        if self._welcome is None:
            self._welcome, task = received(setup)
            if task is not None:
                self._rows = SharedRows.create(None, task.spec.layout.width)
                for _ in range(workers):
                    self._free.put(LocalPool(task, self._rows, {"actor": 1}, setup.step_timeout))
        return self._welcome

    def extend(self, number: int, start: int, rows: Rows, forget: tuple[int, int]) -> None:
        """Piece `number` of the replay rows, and a range of rows that no request will need again."""
        with self._came:
            self._wait_for(number)
            assert self._rows is not None
            self._rows.first(start + len(rows))[start:] = rows
            self._rows.forget(*forget)
            self._pieces = number + 1
            self._came.notify_all()

    def handle(self, request: Request, pieces: int) -> bytes:
        """Handle a request once `pieces` pieces have come; the reply is pickled, so that its arrays can be written to."""
        with self._came:
            self._wait_for(pieces)
        worker = self._free.get()
        try:
            worker.submit(request)
            ((_, reply),) = worker.wait()
            return pickle.dumps(reply)
        except CannotStart as error:
            return pickle.dumps(Unfit(str(error)))
        except RunError as error:
            return pickle.dumps(Failed(str(error), ""))
        finally:
            self._free.put(worker)

    def touch(self, epoch: int) -> None:
        """A heartbeat, which needs no reply: Ray ends this actor with the process that made it."""

    def pids(self) -> list[int]:
        """The worker processes, for tests and monitoring."""
        pools = [self._free.get() for _ in range(self._free.qsize())]
        for pool in pools:
            self._free.put(pool)
        return [pid for pool in pools for pid in pool.pids]

    def _wait_for(self, pieces: int) -> None:
        if not self._came.wait_for(lambda: self._pieces >= pieces, ROWS_WITHIN):
            raise RunError(f"replay rows did not arrive within {ROWS_WITHIN:.0f} s")
