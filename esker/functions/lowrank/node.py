"""One engine of a cluster for low-rank populations: a replica of the strategy that is told scores, never parameters.

This file does not import Ray: `esker.functions.lowrank.fleet` makes the class an actor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from esker.engines.node import NodeSetup, Welcome, received
from esker.errors import RunError, first_line
from esker.functions.batches import Batch
from esker.functions.lowrank.batches import LowRankBatches, LowRankEngine
from esker.functions.lowrank.parts import Parts
from esker.functions.lowrank.strategy import LowRankES, Rates
from esker.functions.task import resolve_device
from esker.system.torch_threads import one_torch_thread

Fitness = NDArray[np.float64]


@dataclass(frozen=True)
class Blueprint:
    """What an engine is opened with: the task, and what its replica of the strategy is made of."""

    task: LowRankBatches
    parts: Parts
    rates: Rates
    seed: int


@dataclass(frozen=True)
class State:
    """A strategy in full, for an engine that joins."""

    strategy: dict[str, Any]
    anchor: torch.Tensor | None


@dataclass(frozen=True)
class ChunkOrder:
    """The directions from `start` on; `missed` is the fitness of the generations that this engine was not told yet."""

    generation: int
    start: int
    members: int
    evaluations: int
    center: int
    missed: list[Fitness]


@dataclass(frozen=True)
class Scores:
    """A chunk's fitness, the centre's with the first chunk, and what the engine and the reward have to report."""

    fitness: NDArray[np.float64]  # (members of the chunk, evaluations)
    center: NDArray[np.float64]
    digest: int
    notes: list[str]
    reports: Any


class LowRankNode:
    """Opened once, then given chunks of directions, generation by generation."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._written = -1  # the generation whose centre the evaluated module holds

    def open(self, setup: NodeSetup) -> Welcome:
        """Build module and strategy, or return why this engine cannot take part."""
        welcome, blueprint = received(setup)
        if blueprint is None:
            return welcome
        assert isinstance(blueprint, Blueprint)
        self._task = replace(blueprint.task, note=self._notes.append)
        self._engine = LowRankEngine(self._task)
        start = torch.from_numpy(self._engine.flat.read())
        self._strategy = LowRankES(
            start, blueprint.parts, blueprint.rates, blueprint.seed, resolve_device(self._task.device)
        )
        return welcome

    def evaluate(self, order: ChunkOrder, state: list[Any]) -> Scores:
        """Catch up with the run, then evaluate a chunk; `state` holds a reference where the engine is too far behind."""
        if state:
            self._restore(state[0])
        strategy = self._strategy
        with one_torch_thread(strategy.device.type == "cpu"):
            for fitness in order.missed:
                strategy.tell(fitness)
        assert strategy.generation == order.generation
        if self._written != order.generation:
            self._engine.write(strategy.center)
            self._written = order.generation
        plan = Batch(np.full(order.center, np.nan), np.full((order.members, order.evaluations), np.nan))
        try:
            count = self._engine.chunk(strategy, order.start, plan)
        except torch.OutOfMemoryError as error:
            raise RunError(
                f"an engine has no memory for {self._task.members_per_batch} members at once ({first_line(error)}); "
                "use a smaller members_per_batch"
            ) from None
        mirror, notes = self._engine.mirror, list(self._notes)
        self._notes.clear()
        take = getattr(self._task.call.function, "take_reports", None)
        fitness = plan.fitness[order.start * mirror : (order.start + count) * mirror]
        return Scores(fitness, plan.center, strategy.digest(), notes, take() if take else None)

    def _restore(self, reference: Any) -> None:
        import ray

        state: State = ray.get(reference)
        self._strategy.load_state_dict(state.strategy)
        if state.anchor is not None and self._strategy.anchor is not None:
            self._strategy.anchor.copy_(state.anchor)
