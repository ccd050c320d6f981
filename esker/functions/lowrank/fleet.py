"""Low-rank generations on a Ray cluster, one engine for each GPU or share of one: seeds go out, scores come in.

Chunks of directions have the same shape whoever evaluates them, and every engine makes the same update from the same
scores, so the bits do not depend on how many engines there are. A killed engine costs the chunk that it was evaluating.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esker.engines.demand import Demand
from esker.engines.node import Welcome, setup_for
from esker.errors import RunError, UsageError
from esker.functions.batches import Batch
from esker.functions.lowrank.batches import LowRankBatches, LowRankJob
from esker.functions.lowrank.node import Blueprint, ChunkOrder, LowRankNode, Scores, State
from esker.functions.lowrank.strategy import LowRankES
from esker.noise.fingerprint import fingerprint
from esker.system import clock

CHUNKS = 4  # of a generation, where members_per_batch is not given
REMEMBERED = 8  # generations whose fitness is kept for engines that had nothing to do in them
TRIES = 3  # losses of a chunk, or of engines at their start, that stop a run
FIRST_WITHIN = 120.0  # seconds to wait for an engine where there is none


@dataclass(eq=False)
class Engine:
    """One actor, as the fleet sees it."""

    actor: Any
    number: int
    opening: Any
    generation: int = -1  # the last one that it took part in
    call: Any = None
    chunk: int = 0  # under way: its first direction
    since: float = field(default_factory=lambda: clock.monotonic())
    pid: int = 0

    @property
    def idle(self) -> bool:
        """Whether it can be given a chunk."""
        return self.opening is None and self.call is None


class LowRankFleet:
    """Evaluates generations on as many engines as the cluster has room for, as they come and go."""

    def __init__(
        self,
        task: LowRankBatches,
        strategy: LowRankES,
        demand: Demand,
        note: Callable[[str], None],
        timeout: float | None = None,
        inexact: bool = False,
    ) -> None:
        self._mirror, self._note, self._demand, self._timeout, self._inexact = (
            2 if task.antithetic else 1, note, demand, timeout, inexact,
        )  # fmt: skip
        self.members_per_batch = task.members_per_batch or -(-strategy.population // CHUNKS // self._mirror) * self._mirror
        self._task = replace(task, members_per_batch=self.members_per_batch)
        self._strategy, self._engines, self._made, self._failures = strategy, list[Engine](), 0, 0
        self._setup: Any = None
        self._told: dict[int, NDArray[np.float64]] = {}

    @property
    def nodes(self) -> list[Engine]:
        """The engines that take part."""
        return [engine for engine in self._engines if engine.opening is None]

    @property
    def workers(self) -> int:
        """How many engines take part."""
        return len(self.nodes)

    def evaluate(self, job: LowRankJob, plan: Batch) -> None:
        """Fill the plan. What a member raises, and a chunk that is lost three times, raise RunError."""
        strategy = job.strategy
        if strategy.told is not None:
            self._told = {g: f for g, f in self._told.items() if g >= strategy.generation - REMEMBERED}
            self._told[strategy.generation - 1] = strategy.told
        self._digest, self._losses = strategy.digest(), dict[int, int]()
        self._state: Any = None  # a reference, once an engine needs it
        directions, size = len(plan.fitness) // self._mirror, self._size(len(plan.fitness) // self._mirror)
        waiting, begun = deque(range(0, directions, size)), clock.monotonic()
        while waiting or any(engine.call is not None for engine in self._engines):
            self._fill()
            for engine in [engine for engine in self._engines if engine.idle]:
                if waiting:
                    self._order(engine, waiting.popleft(), strategy, plan)
            self._listen(strategy, plan, waiting)
            if not self.nodes and clock.monotonic() - begun > FIRST_WITHIN:
                raise RunError(f"no engine of the cluster was ready within {FIRST_WITHIN:.0f} s")

    def close(self) -> None:
        """End every engine."""
        while self._engines:
            self._kill(self._engines[0])

    def _size(self, directions: int) -> int:
        most = max(1, self.members_per_batch // self._mirror)
        return -(-directions // -(-directions // min(most, directions)))

    def _room(self) -> int:
        """How many engines the cluster has room for: one for each share of a GPU, else one for each node."""
        import ray

        demand, room = self._demand, 0
        for node in ray.nodes():  # type: ignore[no-untyped-call]
            offered = node["Resources"] if node["Alive"] else {}
            if demand.workers_on(offered):
                room += int(offered["GPU"] / demand.gpus_per_node + 1e-9) if demand.gpus_per_node else 1
        return room if demand.workers is None else demand.workers

    def _fill(self) -> None:
        """Start engines until there are as many as there is room for."""
        import ray

        if self._setup is None:
            blueprint = Blueprint(self._task, self._strategy.parts, self._strategy.rates, self._strategy.seed)
            setup: Any = setup_for(blueprint, fingerprint=fingerprint(None), inexact=self._inexact)  # type: ignore[arg-type]
            self._setup = ray.put(setup)
        demand = self._demand
        for _ in range(self._room() - len(self._engines)):
            options: dict[str, Any] = {"num_cpus": demand.cpus_per_worker, "num_gpus": demand.gpus_per_node or None}
            options |= {"resources": demand.resources or None, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
            actor: Any = ray.remote(LowRankNode).options(**options).remote()
            self._made += 1
            self._engines.append(Engine(actor, self._made, actor.open.remote(self._setup)))

    def _order(self, engine: Engine, start: int, strategy: LowRankES, plan: Batch) -> None:
        """Give an engine a chunk, with what it needs to reach this generation: scores, or the whole state if it is new."""
        import ray

        behind = range(engine.generation, strategy.generation)
        known = engine.generation >= 0 and all(generation in self._told for generation in behind)
        if not known and self._state is None:
            self._state = ray.put(State(strategy.state_dict(), None if strategy.anchor is None else strategy.anchor.cpu()))
        missed = [self._told[generation] for generation in behind] if known else []
        order = ChunkOrder(strategy.generation, start, len(plan.fitness), plan.fitness.shape[1], len(plan.center), missed)
        engine.call, engine.chunk, engine.since = None, start, clock.monotonic()
        engine.call = engine.actor.evaluate.remote(order, [] if known else [self._state])

    def _listen(self, strategy: LowRankES, plan: Batch, waiting: deque[int]) -> None:
        """Wait for a reply of any engine, and act on it."""
        import ray

        calls = {engine.call or engine.opening: engine for engine in self._engines if not engine.idle}
        ready = ray.wait(list(calls), num_returns=1, timeout=0.5)[0] if calls else []
        if not calls:
            clock.sleep(0.1)
        for call in ready:
            engine, opened = calls[call], calls[call].call is None
            try:
                reply = ray.get(call)
            except ray.exceptions.RayTaskError as error:
                raise RunError(f"engine {engine.number}: {error.cause or error}") from None
            except ray.exceptions.RayError as error:
                self._lost(engine, type(error).__name__, waiting)
                continue
            self._welcome(engine, reply) if opened else self._hear(engine, reply, strategy, plan)
        for engine in list(self._engines) if self._timeout is not None else ():
            if engine.call is not None and clock.monotonic() - engine.since > self._timeout:  # type: ignore[operator]
                self._lost(engine, f"no scores within {self._timeout:g} s", waiting)

    def _welcome(self, engine: Engine, welcome: Welcome) -> None:
        if welcome.refusal is not None:
            raise UsageError(f"an engine on {welcome.host} cannot take part: {welcome.refusal}")
        engine.opening, engine.pid, self._failures = None, welcome.pid, 0

    def _hear(self, engine: Engine, scores: Scores, strategy: LowRankES, plan: Batch) -> None:
        engine.call, engine.generation = None, strategy.generation
        if scores.digest != self._digest:
            text = f"engine {engine.number} computes other bits than this process"
            if not self._inexact:
                raise RunError(f"{text}: it is another kind of machine or device; to use it anyway, add inexact=True")
            engine.generation = -1  # it is given the whole state each time
        for text in scores.notes:
            self._note(text)
        first = engine.chunk * self._mirror
        plan.fitness[first : first + len(scores.fitness)] = scores.fitness
        if not engine.chunk:
            plan.center[:] = scores.center
        report = getattr(self._task.call.function, "report", None)
        if report is not None and scores.reports is not None:
            report(scores.reports)

    def _lost(self, engine: Engine, why: str, waiting: deque[int]) -> None:
        """An engine is gone: its chunk is evaluated elsewhere."""
        at_start, chunk = engine.call is None, engine.chunk
        self._kill(engine)
        if at_start:
            self._failures += 1
            if self._failures >= TRIES:
                raise RunError(f"engines died {TRIES} times at their start ({why})")
            return
        self._losses[chunk] = self._losses.get(chunk, 0) + 1
        if self._losses[chunk] >= TRIES:
            raise RunError(f"the members from {chunk * self._mirror} on were lost {TRIES} times, the last time by: {why}")
        waiting.appendleft(chunk)
        self._note(f"engine {engine.number} was lost ({why}): its chunk is evaluated elsewhere")

    def _kill(self, engine: Engine) -> None:
        import ray

        self._engines.remove(engine)
        with contextlib.suppress(Exception):  # it is gone already, or its node is
            ray.kill(engine.actor)
