"""The plan of a generation: which items are wanted, and when the generation is complete.

Members are numbered 0, 1, 2, … and the generation is the shortest prefix of that sequence that satisfies the minima of
members and of environment steps, regardless of who computed it and in which order results arrived.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from esker.tasks.task import Result


class Plan:
    """Hands out items, takes results, and grows until the step minimum is met."""

    def __init__(
        self,
        members: int,
        *,
        episodes: int = 1,
        center: int = 0,
        unit: int = 1,
        min_steps: int | None = None,
        refuse: Callable[[Result], None] | None = None,
    ) -> None:
        self.members = members
        self.episodes = episodes
        self.center = center
        self.unit = unit
        self.min_steps = min_steps
        self.refuse = refuse  # raises on a result that must stop the run
        self.results: dict[int, Result] = {}
        self.dropped_steps = 0
        self._again: deque[int] = deque()
        self._issued = 0
        self._total = center + members * episodes
        self._prefix = 0  # members whose results are all in, without a gap
        self._prefix_steps = 0
        self._member_steps = 0
        self._members_done = 0
        self._complete: int | None = None

    @property
    def complete(self) -> int | None:
        """How many members the generation has, once it is complete."""
        return self._complete

    @property
    def waiting(self) -> int:
        """Items that could be handed out now."""
        return self._total - self._issued + len(self._again)

    @property
    def may_grow(self) -> bool:
        """Whether there can be more items than those known now."""
        return self.min_steps is not None

    @property
    def known(self) -> int:
        """Items known now, done or not."""
        return self._total

    @property
    def unfinished(self) -> int:
        """Items wanted whose results are not in."""
        return max(self._total - len(self.results), 0)

    def take(self, count: int) -> list[int]:
        """The next items, lowest numbers first."""
        items = [self._again.popleft() for _ in range(min(count, len(self._again)))]
        fresh = range(self._issued, min(self._issued + count - len(items), self._total))
        self._issued += len(fresh)
        return [*items, *fresh]

    def put_back(self, items: Iterable[int]) -> None:
        """Items whose worker was lost are wanted again."""
        self._again.extend(sorted(item for item in items if item not in self.results))

    def add(self, results: Sequence[Result]) -> None:
        """Take results in; one that is already there is an equal duplicate and ignored."""
        for result in results:
            if result.item in self.results:
                self.dropped_steps += result.length
                continue
            if result.error is not None and self.refuse is not None:
                self.refuse(result)
            self.results[result.item] = result
            if result.item >= self.center:
                self._member_steps += result.length
                self._members_done += 1
        self._advance()
        if self._complete is None and self.min_steps is not None:
            self._grow(self.min_steps)

    def of_members(self) -> list[Result]:
        """The results of a complete generation's episodes, member by member."""
        assert self._complete is not None
        return [self.results[item] for item in self._items(0, self._complete)]

    def of_center(self) -> list[Result]:
        """The results of the centre's episodes."""
        return [self.results[item] for item in range(self.center)]

    def _items(self, member: int, members: int) -> range:
        first = self.center + member * self.episodes
        return range(first, first + members * self.episodes)

    def _advance(self) -> None:
        """Extend the gap-free prefix, unit by unit, and see whether it satisfies both minima."""
        while self._prefix < self.members or self._prefix_steps < (self.min_steps or 0):
            unit = [self.results.get(item) for item in self._items(self._prefix, self.unit)]
            if None in unit:
                return
            self._prefix += self.unit
            self._prefix_steps += sum(result.length for result in unit if result)
        if self._complete is None and all(item in self.results for item in range(self.center)):
            self._complete = self._prefix

    def _grow(self, min_steps: int) -> None:
        """Request more members if those done and under way are not expected to reach the minimum."""
        done = self._members_done
        if self.waiting or not done:
            return
        mean = max(self._member_steps / done, 1.0)
        expected = self._member_steps + mean * (self._total - self.center - done)
        missing = min_steps - expected
        if missing > 0 or self.unfinished == 0:
            units = max(1, math.ceil(missing / (mean * self.unit * self.episodes)))
            self._total += units * self.unit * self.episodes
