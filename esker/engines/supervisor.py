"""Worker processes of this machine: started, watched, ended. The engine of generations and the pool share it."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, TypeVar

from esker.errors import RunError
from esker.noise.table import anonymous_memory
from esker.system.lifeline import inherited

ATTEMPTS = 3  # work whose worker is lost this often stops the run
START = 60.0  # seconds beyond the limit of a step that a worker may take to start and make its environments
# A worker ignores Ctrl-C from its first moment on: its parent decides.
MAIN = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from importlib import import_module; import_module(sys.argv.pop(1)).main()"
)
GRACE = 1.0  # seconds in which a worker whose connection ended may exit on its own
LOOK_EVERY = 2.0  # seconds between two looks at whether a worker is stopped; the second such look ends it
SINGLE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")


class CannotStart(RunError):
    """The workers of this machine cannot start; another machine's may."""


class WorkerProcess:
    """One worker process as its parent sees it; it is given its connection, life line and board as descriptors."""

    def __init__(self, supervisor: Supervisor, row: int) -> None:
        self.connection, theirs = Pipe()
        given = (theirs.fileno(), supervisor.life, supervisor.board_fd, row, supervisor.count)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", MAIN, supervisor.module, *map(str, given)],
            pass_fds=[*given[:3], *supervisor.descriptors],
            env=os.environ | SINGLE_THREAD | inherited(supervisor.path),
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # the parent handles Ctrl-C
        )
        theirs.close()
        self.row = row
        self.started_at = self.progress_at = time.monotonic()
        self.progress: tuple[int, ...] = ()
        self.stopped = False

    def send(self, message: Any) -> None:
        """Send a message. A dead worker's connection ends, which its reader notices."""
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def end(self, grace: float = 0.0) -> str:
        """End the process; returns why it ended, if it exits within `grace` seconds."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return _cause(self.process.wait(grace))
        self.process.kill()
        self.process.wait()
        return "the worker process closed its connection"


W = TypeVar("W", bound=WorkerProcess)


class Supervisor:
    """What all workers of an engine share: a board of `fields` numbers each, and a line that ends with this process."""

    def __init__(self, module: str, count: int, fields: int, path: Sequence[str], descriptors: Sequence[int]) -> None:
        self.module, self.count, self.fields = module, count, fields
        self.path, self.descriptors = path, descriptors
        self.board_fd = anonymous_memory(count * fields * 8)
        self.board = memoryview(mmap.mmap(self.board_fd, count * fields * 8)).cast("q")
        self.life, self._life_end = os.pipe()  # workers read it to its end, which is the end of this process
        self._looked_at = time.monotonic()

    def clear(self, row: int) -> None:
        """Empty a row of the board, for a worker that starts."""
        for field in range(self.fields):
            self.board[row * self.fields + field] = 0

    def patience(self, step_timeout: float | None) -> float:
        """Seconds to wait for workers before looking after them."""
        return LOOK_EVERY if step_timeout is None else min(max(step_timeout / 4, 0.01), LOOK_EVERY)

    def found_stopped(self, workers: Iterable[W]) -> list[W]:
        """Workers found stopped (SIGSTOP) twice: they would hold their work forever."""
        if time.monotonic() - self._looked_at <= LOOK_EVERY:
            return []
        self._looked_at, found = time.monotonic(), []
        for worker in workers:
            before, worker.stopped = worker.stopped, is_stopped(worker.process.pid)
            if before and worker.stopped:
                found.append(worker)
        return found

    def close(self, workers: Iterable[WorkerProcess]) -> None:
        """End the workers and free what they shared."""
        for worker in workers:
            worker.end()
        for descriptor in (self.life, self._life_end, self.board_fd):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped, as by SIGSTOP; False if unknown."""
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
