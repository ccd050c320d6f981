"""The pool of a Ray cluster: requests go to whichever node has an idle worker, and again elsewhere when it is lost.

A request gives the same result everywhere, since it names parameters, seeds and how many replay rows to sample from. Each
node keeps a copy of those rows, and is sent what its copy lacks just before a request that trains.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

from esker.engines.node_pool import Unfit
from esker.engines.pool import Kind
from esker.engines.roster import Node, Roster
from esker.errors import RunError
from esker.learners.replay import Replay
from esker.tasks.requests import CriticWork, Failed, Reply, Request

LOOK_EVERY = 0.25  # seconds between two checks for new nodes
PIECE = 8_000_000  # bytes of replay rows in one message
PIECES_UNDER_WAY = 4  # so that a long replay does not fill Ray's object store


@dataclass(eq=False)
class Site:
    """A node of the pool: what it is doing, and which replay rows its copy has."""

    node: Node
    kind: Kind
    work: dict[Any, tuple[int, Request]] = field(default_factory=dict)  # by call
    first: int = 0
    end: int = 0
    pieces: int = 0

    @property
    def free(self) -> int:
        """How many of its workers have nothing to do."""
        return self.node.workers - len(self.work)


class RayPool:
    """Worker processes on the nodes of a cluster, as nodes come and go; a roster for each kind."""

    def __init__(
        self, rosters: Mapping[Kind, Roster], replay: Replay, capacity: int, note: Callable[[str], None] | None = None
    ) -> None:
        self._rosters = rosters
        self._replay = replay
        self._capacity = capacity
        self._note = note or (lambda text: None)
        self._sites: list[Site] = []
        self._again: deque[tuple[Kind, int, Request]] = deque()
        self._seen: set[Kind] = set()  # the kinds that ever had a node
        self._tickets = 0
        self._began_at = time.monotonic()

    @property
    def nodes(self) -> list[Node]:
        """The nodes on which individuals are evaluated."""
        return [site.node for site in self._sites if site.kind == "actor"]

    @property
    def critic_nodes(self) -> list[Node]:
        """The node on which the critic trains, where it has a separate one."""
        return [site.node for site in self._sites if site.kind == "critic"]

    @property
    def workers(self) -> int:
        """The worker processes that evaluate individuals, over all nodes."""
        return sum(node.workers for node in self.nodes)

    def idle(self, kind: Kind) -> int:
        """How many workers of a kind have nothing to do."""
        self._admit()
        return sum(site.free for site in self._sites if site.kind == kind)

    def submit(self, request: Request, kind: Kind = "actor") -> int:
        """Hand a request to an idle worker; returns its ticket."""
        self._tickets += 1
        self._give(kind, self._tickets, request)
        return self._tickets

    def wait(self) -> list[tuple[int, Reply]]:
        """Block until there is a reply, or a node has joined that the caller may have work for."""
        import ray

        replies: list[tuple[int, Reply]] = []
        while not replies:
            if self._admit() and any(site.free for site in self._sites):
                break
            calls = {call: site for site in self._sites for call in site.work}
            if not calls:
                if self._sites and not self._again:
                    break
                time.sleep(LOOK_EVERY)
                continue
            ready, _ = ray.wait(list(calls), num_returns=1, timeout=LOOK_EVERY)
            if ready and len(calls) > 1:
                ready, _ = ray.wait(list(calls), num_returns=len(calls), timeout=0)
            for call in ready:
                replies += self._hear(calls[call], call)
        return replies

    def close(self) -> None:
        """End the workers on every node."""
        for roster in self._rosters.values():
            roster.close()

    def _admit(self) -> bool:
        """Take in nodes that have become ready and give them what was lost; returns whether there are any."""
        before = len(self._sites)
        for kind, roster in self._rosters.items():
            while not roster.notes.empty():
                self._note(roster.notes.get())
            for node in _arrived(roster):
                self._sites.append(Site(node, kind))
                self._seen.add(kind)
            if kind not in self._seen:
                roster.give_up(self._began_at)
        for _ in range(len(self._again)):
            kind, ticket, request = self._again.popleft()
            if any(site.free and site.kind == kind for site in self._sites):
                self._give(kind, ticket, request)
            else:
                self._again.append((kind, ticket, request))
        return len(self._sites) > before

    def _give(self, kind: Kind, ticket: int, request: Request) -> None:
        site = max((site for site in self._sites if site.kind == kind), key=lambda site: site.free)
        count = self._rows_of(request)
        if count:
            self._ship(site, max(0, count - self._capacity), count)
        call = site.node.actor.handle.remote(request, site.pieces if count else 0)
        site.work[call] = ticket, request

    def _ship(self, site: Site, first: int, end: int) -> None:
        """Send what a node's copy lacks of a window; it may drop what precedes every window in use there."""
        import ray

        if site.end <= first:
            site.first = site.end = first  # it has nothing useful: start here
        in_use = [count for _, request in site.work.values() if (count := self._rows_of(request))]
        oldest = max(0, min([*in_use, end]) - self._capacity)
        rows, sent = self._replay.rows.first(end), []
        many = max(1, PIECE // (rows.shape[1] * 4))
        for start, stop in ((first, site.first), (site.end, end)):
            for at in range(start, stop, many):
                forget = (site.first, oldest) if oldest - site.first > many else (0, 0)
                site.first = max(site.first, forget[1])
                sent.append(site.node.actor.extend.remote(site.pieces, at, rows[at : min(at + many, stop)], forget))
                site.pieces += 1
                if len(sent) > PIECES_UNDER_WAY:
                    ray.wait([sent.pop(0)], timeout=60)
        site.first, site.end = min(site.first, first), max(site.end, end)

    def _rows_of(self, request: Request) -> int:
        """How many rows of the replay a request counts on; none where it does not train."""
        training = request if isinstance(request, CriticWork) else request.training
        return training.replay_count - self._replay.begin if training is not None else 0

    def _hear(self, site: Site, call: Any) -> list[tuple[int, Reply]]:
        """The reply of a call, if it has one and was not given up."""
        import ray

        if call not in site.work:
            return []
        try:
            reply: Reply | Unfit = pickle.loads(ray.get(call))
        except ray.exceptions.RayTaskError as error:  # the node itself is wrong: trying again would not help
            raise RunError(f"node {site.node.name}: {error}") from error
        except ray.exceptions.RayError as error:
            self._lost(site, type(error).__name__)
            return []
        if isinstance(reply, Unfit):
            self._rosters[site.kind].refuse(site.node, reply.why)
            self._lost(site, None)
            return []
        if isinstance(reply, Failed):
            raise RunError(reply.error)
        ticket, _ = site.work.pop(call)
        return [(ticket, reply)]

    def _lost(self, site: Site, why: str | None) -> None:
        """A node is gone: what it was doing is asked again elsewhere."""
        self._sites.remove(site)
        self._rosters[site.kind].lost(site.node)
        self._again.extend((site.kind, ticket, request) for ticket, request in site.work.values())
        if why is not None:
            what = "the critic's chunk" if site.kind == "critic" else f"{len(site.work)} individuals"
            self._note(f"node {site.node.name} was lost ({why}): {what} will be done elsewhere")
        if not any(other.kind == site.kind for other in self._sites):
            self._note(f"no node is left for the {site.kind}: waiting for one to join")


def _arrived(roster: Roster) -> Iterator[Node]:
    while True:
        try:
            yield roster.arrivals.get(block=False)
        except Empty:
            return
