"""How many items a worker may hold: enough to be busy while it asks for more, few enough that all end together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

RESERVE = 48  # items that a worker holds beyond its slots, at most: asking wakes the engine, which has no dedicated core
RESERVE_SECONDS = 0.05  # of work; longer than an engine on a busy machine takes to reply
LEAST_RESERVE = 2
LONG = 0.02  # seconds of an item above which an even end is worth more than full slots


@dataclass(frozen=True)
class Sharing:
    """The part of what is unfinished that is shared out, and a worker's reserve; None: all of its share at once."""

    part: float = 0.85
    reserve: int | None = RESERVE

    def target(self, unfinished: int, workers: int, slots: int) -> int:
        """How many items a worker should hold."""
        fair = max(math.ceil(unfinished * self.part / workers), 1)
        if self.reserve is None:
            return fair
        return min(fair, slots + self.reserve)


def sharing_after(lengths: Iterable[int], seconds: float) -> Sharing:
    """The sharing of the next generation, from the lengths of this one's items and the work that one of them was.

    Episodes of one length finish together when shared out at once: the first worker to ask for more would get too much.
    Others even out while few are held: in a model of 462 unequal episodes on 16 workers, handing out most of them at the
    start left a fifth of the workers' time unused. Items shorter than a reply are held in number. A function's length is
    always 1 and tells nothing of how long it takes.
    """
    distinct = set(lengths)
    if distinct == {1}:
        return Sharing(0.5)
    if len(distinct) == 1:
        return Sharing(1.0, None)
    if seconds * RESERVE <= RESERVE_SECONDS:
        return Sharing()
    reserve = max(LEAST_RESERVE, math.ceil(RESERVE_SECONDS / seconds))
    return Sharing(0.5, reserve) if seconds > LONG else Sharing(reserve=reserve)
