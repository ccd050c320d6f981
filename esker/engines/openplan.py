"""A plan fed from outside: a node's share of a generation, given in ranges and returned in batches.

The engine's thread takes items and adds results; the threads of the node's calls offer items and collect results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from esker.engines.plan import Plan
from esker.system import clock
from esker.tasks.task import Result


class OpenPlan(Plan):
    """Looks like a plan to the local engine; complete only once it is closed."""

    def __init__(self) -> None:
        super().__init__(0)
        self._complete = None
        self._changed = clock.Condition()
        self._queue: deque[int] = deque()
        self._wanted: set[int] = set()
        self._fresh: list[Result] = []
        self.failure: Exception | None = None

    @property
    def waiting(self) -> int:
        """Items that could be handed out now."""
        return len(self._queue)

    @property
    def may_grow(self) -> bool:
        """Ranges are offered as long as it is open."""
        return True

    @property
    def unfinished(self) -> int:
        """Items offered whose results are not in."""
        return len(self._wanted)

    def offer(self, items: Iterable[int]) -> None:
        """More items; those known already are not evaluated twice, and results that were lost on the way are sent again."""
        with self._changed:
            for item in items:
                if item in self.results:
                    self._fresh.append(self.results[item])
                elif item not in self._wanted:
                    self._wanted.add(item)
                    self._queue.append(item)

    def take(self, count: int) -> list[int]:
        """The next items, in the order in which they were offered."""
        with self._changed:
            return [self._queue.popleft() for _ in range(min(count, len(self._queue)))]

    def put_back(self, items: Iterable[int]) -> None:
        """Items whose worker was lost are wanted again, before the others."""
        with self._changed:
            self._queue.extendleft(sorted((item for item in items if item in self._wanted), reverse=True))

    def add(self, results: Sequence[Result]) -> None:
        """Take results in."""
        with self._changed:
            for result in results:
                if result.item in self._wanted:
                    self._wanted.discard(result.item)
                    self.results[result.item] = result
                    self._fresh.append(result)
                else:
                    self.dropped_steps += result.length
            self._changed.notify_all()

    def collect(self, low: int, patience: float) -> list[Result]:
        """The results since the last call: when at most `low` items are unfinished, or after `patience` seconds."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.unfinished <= low or self._complete is not None or self.failure is not None, patience
            )
            fresh, self._fresh = self._fresh, []
            return fresh

    def close(self) -> None:
        """The generation is over: what is under way is dropped."""
        with self._changed:
            self._complete = 0
            self._queue.clear()
            self._changed.notify_all()

    def leave(self, failure: Exception | None) -> None:
        """The engine is done with the plan, or failed."""
        with self._changed:
            self.failure = failure
            self._changed.notify_all()
