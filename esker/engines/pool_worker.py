"""A worker of a pool: opens the task, handles one request after the other, and ends when its parent does."""

from __future__ import annotations

import contextlib
import mmap
import sys
import threading
from multiprocessing.connection import Connection

import cloudpickle

from esker.engines.worker import _exit_with_parent
from esker.learners.rows import SharedRows
from esker.system.lifeline import hold_lifeline
from esker.tasks.requests import Failed
from esker.tasks.rollouts import what_failed


def main() -> None:
    """Entry point: descriptors of the connection, of the parent's life line and of the board, and the board's entry."""
    connection_fd, life_fd, board_fd, number, _ = (int(value) for value in sys.argv[1:])
    hold_lifeline()
    threading.Thread(target=_exit_with_parent, args=(life_fd,), daemon=True).start()
    connection = Connection(connection_fd)
    try:
        setup = connection.recv()
        sys.path[:] = setup.path
        board = memoryview(mmap.mmap(board_fd, 0)).cast("q")
        worker = cloudpickle.loads(setup.task).open(SharedRows(*setup.rows), board[number : number + 1])
        while True:
            connection.send(worker.handle(connection.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            connection.send(Failed(*what_failed(error)))
