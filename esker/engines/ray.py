"""The Ray engine: many local engines, one per node, fed with ranges of items and returning arrays.

Messages grow with nodes, not with workers. Results are keyed by item and every item is a pure function of its address,
so a node may come, go, freeze or return results twice: what is evaluated again is evaluated to the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from queue import Empty
from typing import Any

import numpy as np

from esker.engines.node import NodeReply, Order, exit_if_outdated
from esker.engines.packing import unpack
from esker.engines.plan import Plan
from esker.engines.roster import Node, Roster
from esker.errors import RunError
from esker.system import clock
from esker.tasks.task import Job

PATIENCE = 0.5  # seconds after which a node returns what it has; grows with the number of nodes
STRAGGLING = 1.5  # a generation's last items are evaluated again this many times after the first node ran idle


class RayEngine:
    """Evaluates plans on every node of a Ray cluster, as nodes come and go."""

    def __init__(self, roster: Roster, note: Callable[[str], None] | None = None) -> None:
        self._roster = roster
        self._epoch = roster.epoch
        self._note = note or (lambda text: None)
        self._nodes: list[Node] = []
        self._share = 1.0
        self._had_nodes = False
        self._interrupted = False
        self._round = 0

    @property
    def nodes(self) -> list[Node]:
        """The nodes in use."""
        return list(self._nodes)

    @property
    def epoch(self) -> int:
        """The number of this coordinator's life; nodes obey the newest."""
        return self._epoch

    @property
    def workers(self) -> int:
        """The worker processes in use, over all nodes."""
        return sum(node.workers for node in self._nodes)

    def interrupt(self) -> None:
        """From another thread: let `evaluate` end at once, as by Ctrl-C."""
        self._interrupted = True

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Evaluate the plan on whatever nodes there are; return when it is complete, even if some nodes are still busy."""
        import ray

        self._job, self._round = ray.put(job), self._round + 1
        self._started_at = clock.monotonic()
        self._first_idle_at: float | None = None
        for node in self._nodes:
            node.items.clear()
        while plan.complete is None:
            if self._interrupted:
                raise KeyboardInterrupt
            self._admit()
            self._feed_all(plan)
            self._listen(plan)
        for node in self._nodes:
            if node.call is not None:  # a straggler; its late reply is dropped when it comes
                node.actor.finish.remote(self._epoch, self._round)
        lengths = {result.length for result in plan.results.values()}
        even = len(lengths) == 1 and lengths != {1}  # a function's length is always 1 and tells nothing of how long it takes
        self._share = 1.0 if even else 0.5

    def close(self) -> None:
        """End the engines on every node."""
        self._roster.close()

    def _admit(self) -> None:
        """Take in nodes that have become ready, and pass on the roster's notices. Without any node, wait for one."""
        self._say_notes()
        while True:
            try:
                node = self._roster.arrivals.get(block=not self._nodes, timeout=1.0)
            except Empty:
                self._say_notes()
                if self._nodes or self._had_nodes or self._interrupted:
                    return
                self._roster.give_up(self._started_at)
                continue
            self._nodes.append(node)
            self._had_nodes = True

    def _say_notes(self) -> None:
        while not self._roster.notes.empty():
            self._note(self._roster.notes.get())

    def _feed_all(self, plan: Plan) -> None:
        for node in self._nodes:
            if node.call is None:
                self._feed(node, plan)

    def _feed(self, node: Node, plan: Plan) -> None:
        """Give a node its fair share of what is unfinished; when nothing waits, what others are late with."""
        share = 1.0 if len(self._nodes) == 1 else self._share
        fair = math.ceil(plan.unfinished * share * node.workers / self.workers)
        fair = max(fair, node.workers)
        items = plan.take(fair - len(node.items)) if fair > len(node.items) else []
        if not items and not node.items:
            items = self._late_items(node, plan)
        node.items.update(items)
        if not node.items:
            return
        more = plan.waiting > 0 or plan.min_steps is not None
        low = fair // 4 if more and len(node.items) > fair // 4 else 0
        patience = max(PATIENCE, 0.02 * len(self._nodes))
        order = Order(self._epoch, self._round, np.array(items, dtype=np.int64), low, patience)
        node.call = node.actor.feed.remote(order, [self._job])

    def _late_items(self, node: Node, plan: Plan) -> list[int]:
        """Some of the items that other nodes hold, once the generation has taken noticeably longer than this node."""
        now = clock.monotonic()
        if self._first_idle_at is None:
            self._first_idle_at = now
        allowed = max(STRAGGLING * (self._first_idle_at - self._started_at), PATIENCE)
        if now - self._started_at < allowed:
            return []
        copies: dict[int, int] = {}
        for other in self._nodes:
            for item in other.items:
                copies[item] = copies.get(item, 0) + 1
        late = sorted(item for item, count in copies.items() if count == 1 and item not in plan.results)
        idle = sum(other.workers for other in self._nodes if not other.items)
        return late[: max(1, math.ceil(len(late) * node.workers / idle))]

    def _listen(self, plan: Plan) -> None:
        """Wait for replies, and act on all that are there."""
        import ray

        calls = {node.call: node for node in self._nodes if node.call is not None}
        if not calls:
            clock.sleep(0.02)
            return
        ready, _ = ray.wait(list(calls), num_returns=1, timeout=0.25)
        if ready and len(calls) > 1:
            ready, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0)
        for call in ready:
            self._hear(calls[call], call, plan)

    def _hear(self, node: Node, call: Any, plan: Plan) -> None:
        import ray

        node.call = None
        try:
            reply: NodeReply = ray.get(call)
        except ray.exceptions.RayTaskError as error:  # the engine itself is wrong: trying again would not help
            exit_if_outdated(error)
            raise RunError(f"node {node.name}: {error}") from error
        except ray.exceptions.RayError as error:
            self._lost(node, plan, type(error).__name__)
            return
        plan.dropped_steps += reply.dropped
        if reply.unfit is not None:
            self._roster.refuse(node, reply.unfit)
            self._lost(node, plan, None)
        elif reply.round != self._round:  # late: its round is over
            plan.dropped_steps += int(reply.results.lengths.sum())
        elif reply.failure is not None:
            raise RunError(reply.failure)
        else:
            node.items.difference_update(reply.results.items.tolist())
            plan.add(unpack(reply.results))

    def _lost(self, node: Node, plan: Plan, why: str | None) -> None:
        """A node is gone: what it held is wanted again, unless another node holds it too."""
        self._nodes.remove(node)
        self._roster.lost(node)
        held = {item for other in self._nodes for item in other.items}
        plan.put_back(node.items - held)
        if why is not None:
            self._note(f"node {node.name} was lost ({why}): {len(node.items)} items are evaluated elsewhere")
        if not self._nodes:
            self._note("no node is left: waiting for one to join")
