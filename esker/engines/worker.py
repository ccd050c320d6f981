"""The worker process: opens a task, evaluates what it is sent, and ends when its parent does.

Started by a supervisor in a new interpreter, so it never re-imports the user's main module and needs no start method.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from esker.engines.messages import BOARD_FIELDS, REPORT_EVERY, Broken, Drop, Finished, Items, Ready, Report, Setup
from esker.engines.packing import pack
from esker.errors import named_line
from esker.noise.table import NoiseTable
from esker.system.lifeline import hold_lifeline
from esker.tasks.task import Board, Job, Result, Task


class Feed:
    """The worker's side of the conversation, as the `take` and `give` of one generation."""

    def __init__(self, connection: Connection, board: Board) -> None:
        self.connection = connection
        self.board = board
        self.received = 0
        self.queue: deque[int] = deque()
        self.results: list[Result] = []

    def receive(self) -> Any:
        message = self.connection.recv()
        self.received += 1
        return message

    def begin(self, job: Job) -> None:
        self.generation = job.generation
        self.asked = True  # the engine sends the first items unasked
        self.last = False
        self.queue.clear()
        self.results.clear()

    @property
    def waiting(self) -> bool:
        """Whether a message is there to be received; looking at the board costs nanoseconds, polling a pipe 15 µs."""
        return bool(self.board[2] > self.received)

    def take(self, free: int, busy: int) -> list[int] | None:
        if self.waiting:
            if isinstance(message := self.receive(), Drop):
                return None
            self._accept(message)
        while free and not self.queue:
            if busy and self.last:
                break
            if not self.asked or (self.results and not busy):
                self.report(wants=True)
            if busy:
                break
            if isinstance(message := self.receive(), Drop):
                return None
            self._accept(message)
        return [self.queue.popleft() for _ in range(min(free, len(self.queue)))]

    def _accept(self, message: Items) -> None:
        self.queue.extend(message.items)
        self.asked, self.last = False, message.last

    def give(self, results: Sequence[Result]) -> None:
        self.results.extend(results)
        if (self.asked and not self.waiting) or len(self.results) >= REPORT_EVERY:
            self.report(wants=False)  # at once where nothing is left to do: these may be the results that all wait for

    def report(self, wants: bool) -> None:
        self.connection.send(Report(self.generation, pack(self.results), wants))
        self.results = []
        self.asked = self.asked or wants


def serve(connection: Connection, board: Board) -> None:
    """Open the task and evaluate generation after generation."""
    feed = Feed(connection, board)
    setup: Setup = feed.receive()
    sys.path[:] = setup.path
    task: Task = cloudpickle.loads(setup.task)
    evaluator = task.open(NoiseTable(*setup.table) if setup.table else None, board)
    connection.send(Ready())
    while True:
        job: Job = feed.receive()
        feed.begin(job)
        dropped = evaluator.evaluate(job, feed.take, feed.give)
        connection.send(Finished(job.generation, dropped + sum(result.length for result in feed.results)))


def _exit_with_parent(descriptor: int) -> None:
    """Block on a pipe that only the parent holds open; its end of file is the parent's death."""
    with contextlib.suppress(OSError):
        os.read(descriptor, 1)
    os._exit(1)


def main() -> None:
    """Entry point: descriptors of the connection, of the parent's life line and of the board, and the board's row."""
    connection_fd, life_fd, board_fd, row, rows = (int(value) for value in sys.argv[1:])
    hold_lifeline()
    threading.Thread(target=_exit_with_parent, args=(life_fd,), daemon=True).start()
    board = memoryview(mmap.mmap(board_fd, rows * BOARD_FIELDS * 8)).cast("q")
    connection = Connection(connection_fd)
    try:
        serve(connection, board[row * BOARD_FIELDS : (row + 1) * BOARD_FIELDS])
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:
        message = named_line(error)
        with contextlib.suppress(OSError):
            connection.send(Broken(message, traceback.format_exc()))
