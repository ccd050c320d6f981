"""Which worker holds which items of a generation: slices by measured speed, returned when a worker goes silent."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from esker.engines.plan import Plan

SHARE = 0.5  # of what is unfinished is shared out at once: speeds change, and the rest evens that out
SMOOTHING = 0.5  # how much a new measurement of a worker's speed counts


@dataclass
class Holder:
    """One worker: when it was last heard of, its speed in items a second, and what it holds since when."""

    heard_at: float
    speed: float | None = None
    items: dict[int, float] = field(default_factory=dict)


class Assignments:
    """The workers of a run and the plan of its present generation. Times are given by the caller."""

    def __init__(self, silent_after: float) -> None:
        self.silent_after = silent_after
        self.workers: dict[str, Holder] = {}
        self.plan: Plan | None = None

    def begin(self, plan: Plan) -> None:
        """A new generation: what workers hold of an older one is dropped."""
        self.plan = plan
        for holder in self.workers.values():
            holder.items.clear()

    def hear(self, worker: str, now: float) -> Holder:
        """A heartbeat; an unknown worker joins."""
        holder = self.workers.setdefault(worker, Holder(now))
        holder.heard_at = now
        return holder

    def take(self, worker: str, now: float) -> list[int]:
        """A slice for this worker, or what others are late with once nothing waits; empty: nothing to do now."""
        holder = self.hear(worker, now)
        if self.plan is None or self.plan.complete is not None:
            return []
        items = self.plan.take(self._fair(holder)) or self._late(worker)
        holder.items.update(dict.fromkeys(items, now))
        return items

    def _fair(self, holder: Holder) -> int:
        """As many items as this worker does while the others do theirs; one, to measure it, at first."""
        assert self.plan is not None
        if holder.speed is None:
            return 1
        known = sum(other.speed for other in self.workers.values() if other.speed is not None)
        return max(1, math.ceil(self.plan.unfinished * SHARE * holder.speed / known))

    def _late(self, worker: str) -> list[int]:
        """Half of what the worker with the most work left still holds: the first report counts."""
        assert self.plan is not None
        results, mine = self.plan.results, self.workers[worker].items
        held = {
            name: [item for item in other.items if item not in results and item not in mine]
            for name, other in self.workers.items()
            if name != worker
        }
        slowest = max(held, key=lambda name: len(held[name]) / (self.workers[name].speed or math.inf), default=None)
        if slowest is None or not held[slowest]:
            return []
        return held[slowest][len(held[slowest]) // 2 :]

    def done(self, worker: str, items: Iterable[int], now: float) -> None:
        """Results of these items came in: measure how fast that was."""
        holder = self.hear(worker, now)
        since = [holder.items.pop(item) for item in items if item in holder.items]
        if since:
            measured = len(since) / max(now - min(since), 1e-6)
            before = measured if holder.speed is None else holder.speed
            holder.speed = (1 - SMOOTHING) * before + SMOOTHING * measured

    def leave(self, worker: str) -> None:
        """A worker is gone: what only it held is wanted again."""
        holder = self.workers.pop(worker, None)
        if holder is not None and self.plan is not None:
            elsewhere = {item for other in self.workers.values() for item in other.items}
            self.plan.put_back(set(holder.items) - elsewhere)

    def expire(self, now: float) -> list[str]:
        """Workers that have been silent for too long leave; returns their names."""
        silent = [name for name, holder in self.workers.items() if now - holder.heard_at > self.silent_after]
        for name in silent:
            self.leave(name)
        return silent
