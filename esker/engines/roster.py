"""The roster: which nodes a cluster has, and the engine on each. It runs in a separate thread, since asking may block."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from esker.engines.demand import Demand
from esker.engines.node import NodeEngine, NodeSetup, Welcome, exit_if_outdated
from esker.errors import RunError, UsageError
from esker.system import clock

NAMESPACE = "esker"
SLOTS_LABEL = "esker-slots"
FIRST_NODE_WITHIN = 120.0  # seconds to wait for the first node; later and returning ones may take as long as they need
LOOK_EVERY = 1.0
TOUCH_EVERY = 10.0
PENDING_AFTER = 15.0  # seconds after which a node that has not responded is noted
TRIES = 3  # engines that die at their start this often make a node unfit


@dataclass(eq=False)
class Node:
    """One node's engine, as the Ray engine sees it."""

    id: str
    name: str
    actor: Any
    workers: int
    started_at: float = field(default_factory=lambda: clock.monotonic())
    opening: Any = None
    said_pending: bool = False
    pid: int = 0
    call: Any = None  # the call under way
    items: set[int] = field(default_factory=set)


class Roster:
    """Starts an engine on every node that fits, again and again; `arrivals` are ready to be fed.

    Engines of a named run are detached: they outlive the coordinator, whose successor finds them by `run`.
    """

    def __init__(
        self, setup: NodeSetup, demand: Demand, run: str | None = None, epoch: int = 0, kind: type[Any] = NodeEngine
    ) -> None:
        self.arrivals: clock.SimpleQueue[Node] = clock.SimpleQueue()
        self.notes: clock.SimpleQueue[str] = clock.SimpleQueue()
        self.refusals: dict[str, str] = {}  # node id: why it does not take part
        self._setup, self._demand, self._run, self.epoch, self._kind = setup, demand, run, epoch, kind
        self._lock = clock.Lock()
        self._nodes: dict[str, Node] = {}
        self._failures: dict[str, int] = {}
        self._touched_at = clock.monotonic()
        self._closed = clock.Event()
        self._thread = clock.Thread(target=self._watch, daemon=True, name="esker-roster")
        self._thread.start()

    def starting(self) -> bool:
        """Whether some node's engine is on its way."""
        with self._lock:
            return any(node.opening is not None for node in self._nodes.values())

    def give_up(self, since: float) -> None:
        """Raise why no first node came: UsageError where all are refused, RunError where none came in time."""
        waited = clock.monotonic() - since
        refusals = list(self.refusals.values())
        if refusals and not self.starting() and waited > 5:
            raise UsageError("no node can take part: " + "; ".join(refusals))
        if waited > FIRST_NODE_WITHIN:
            with self._lock:
                late = [f"node {node.name} is still starting" for node in self._nodes.values() if node.opening is not None]
            known = "".join(f"; {text}" for text in (*refusals, *late))
            raise RunError(f"no node of the cluster was ready within {FIRST_NODE_WITHIN:.0f} s{known}")

    def lost(self, node: Node) -> None:
        """This node's engine is gone, or cannot be reached; it is looked for again, and another started if it is gone.

        One with a name keeps its copy of the run until then; one without could not be found again.
        """
        with self._lock:
            if self._nodes.get(node.id) is node:
                del self._nodes[node.id]
        if self._run is None:
            _kill(node)

    def refuse(self, node: Node, why: str) -> None:
        """This node takes no further part."""
        self.refusals[node.id] = f"node {node.name} is not used: {why}"
        self.notes.put(self.refusals[node.id])
        self.lost(node)
        _kill(node)

    def close(self) -> None:
        """End every engine."""
        self._closed.set()
        self._thread.join(5)
        with self._lock:
            nodes, self._nodes = list(self._nodes.values()), {}
        for node in nodes:
            _kill(node)

    def _watch(self) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(Exception):  # the head may be down: the nodes keep working, and it may come back
                self._look()
            self._closed.wait(LOOK_EVERY / 5 if self.starting() else LOOK_EVERY)

    def _look(self) -> None:
        import ray

        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]
        with self._lock:
            for gone in set(self._failures) - set(alive):
                del self._failures[gone]
            for identity, facts in alive.items():
                if identity not in self._nodes and identity not in self.refusals and not self._closed.is_set():
                    self._start(identity, facts)
            opening = {node.opening: node for node in self._nodes.values() if node.opening is not None}
            touched = list(self._nodes.values()) if clock.monotonic() - self._touched_at > TOUCH_EVERY else []
        if opening:
            ready, _ = ray.wait(list(opening), num_returns=len(opening), timeout=0)
            for reference in ready:
                self._opened(opening[reference], reference)
        for node in opening.values():
            self._say_pending(node)
        if touched:
            self._touched_at = clock.monotonic()
            for node in touched:
                node.actor.touch.remote(self.epoch)

    def _start(self, identity: str, facts: dict[str, Any]) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        demand = self._demand
        if demand.node not in (None, identity):
            return
        count = demand.workers_on(facts["Resources"])
        if demand.workers is not None:
            count = min(count, demand.workers - sum(node.workers for node in self._nodes.values()))
        if count < 1:
            return
        options: dict[str, Any] = {
            "num_cpus": count * demand.cpus_per_worker,
            "num_gpus": demand.gpus_per_node or None,
            "resources": demand.resources or None,
            "max_restarts": 0,
            "max_concurrency": count + 8,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(identity, soft=False),
        }
        if self._run is not None:  # under a coordinator, engines outlive it
            options |= {"name": f"{self._run}@{identity}", "namespace": NAMESPACE, "lifetime": "detached"}
            options["get_if_exists"] = True
        actor: Any = ray.remote(self._kind).options(**options).remote()
        name = facts.get("NodeName") or facts.get("NodeManagerAddress") or identity[:8]
        node = Node(identity, f"{name} ({identity[:6]})", actor, count)
        slots = (facts.get("Labels") or {}).get(SLOTS_LABEL)
        node.opening = actor.open.remote(self.epoch, self._setup, count, int(slots) if slots else None)
        self._nodes[identity] = node

    def _opened(self, node: Node, reference: Any) -> None:
        import ray

        node.opening = None
        try:
            welcome: Welcome = ray.get(reference, timeout=10)
        except ray.exceptions.RayTaskError as error:
            exit_if_outdated(error)
            self.refuse(node, f"its engine could not be opened: {_last_line(error)}")
            return
        except ray.exceptions.ActorUnavailableError:  # for a moment, or until its node is known to be dead
            self.lost(node)
            return
        except Exception as error:
            self._failures[node.id] = self._failures.get(node.id, 0) + 1
            if self._failures[node.id] >= TRIES:
                self.refuse(node, f"its engine died {TRIES} times at its start: {_last_line(error)}")
            self.lost(node)
            return
        if welcome.refusal is not None:
            self.refuse(node, welcome.refusal)
            return
        if welcome.notice is not None:
            self.notes.put(f"node {node.name} is used inexactly: {welcome.notice}")
        self._failures.pop(node.id, None)
        node.pid = welcome.pid
        self.arrivals.put(node)

    def _say_pending(self, node: Node) -> None:
        if node.opening is not None and not node.said_pending and clock.monotonic() - node.started_at > PENDING_AFTER:
            node.said_pending = True
            cpus, gpus = node.workers * self._demand.cpus_per_worker, self._demand.gpus_per_node
            wanted = " and ".join(f"{n:g} {name}" for n, name in ((cpus, "CPUs"), (gpus, "GPU")) if n)
            self.notes.put(f"node {node.name} has not provided {wanted} yet: is it busy with other work?")


def _kill(node: Node) -> None:
    import ray

    with contextlib.suppress(Exception):  # it is gone already, or its node is
        ray.kill(node.actor)


def _last_line(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    return (str(cause).strip().splitlines() or [type(cause).__name__])[-1]
