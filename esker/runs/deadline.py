"""The end of a run's time, also in the middle of a generation that would never end."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

PATIENCE = 2.0  # times the longest generation so far that the one under way may take beyond the limit
WRITING = 0.01  # seconds between looks whether a generation is written down
LONGEST = 86_400.0  # seconds that a timer is set for; it is set again until the time is over


class OutOfTime(BaseException):
    """The run's time is over and the generation under way is not. No environment's `except Exception` may swallow it."""


class Deadline:
    """Knows how long generations take, and raises OutOfTime in one that outlasts the limit by too much."""

    def __init__(self, seconds: float, generations: Callable[[], int]) -> None:
        self.generations = generations  # how many are done
        self.counted = generations()
        self.end = time.monotonic() + seconds
        self.began = time.monotonic()
        self.longest = 0.0

    def generation(self) -> None:
        """A generation was committed; another begins."""
        now = time.monotonic()
        self.longest, self.began = max(self.longest, now - self.began), now
        self.counted = self.generations()

    def stop(self) -> None:
        """All generations are done: what follows is no part of the limit."""
        self.end = float("inf")

    def left(self) -> float:
        """Seconds until the generation under way must be given up. One that is being written down is done."""
        now = time.monotonic()
        left = max(self.end - now, self.began + PATIENCE * self.longest - now)
        return left if self.counted == self.generations() else max(left, WRITING)


@contextlib.contextmanager
def deadline(wall_time: float | None, spent: float, generations: Callable[[], int]) -> Iterator[Deadline]:
    """Stop a generation that takes too long after `wall_time` seconds of training, of which `spent` are over.

    Outside of the main thread a limit counts between generations only.
    """
    limit = Deadline(float("inf") if wall_time is None else max(0.0, wall_time - spent), generations)
    if wall_time is None or threading.current_thread() is not threading.main_thread():
        yield limit
        return

    def ring(number: int, frame: Any) -> None:
        left = limit.left()
        if left <= 0:
            raise OutOfTime
        signal.setitimer(signal.ITIMER_REAL, min(left, LONGEST))

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, min(max(limit.left(), 0.001), LONGEST))
    try:
        yield limit
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
