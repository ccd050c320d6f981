"""Evolution of a user's model by a user's reward: the state that `esker.Evolution` moves, generation by generation."""

from __future__ import annotations

import math

import numpy as np
import torch

from esker.algorithms.center import Center
from esker.algorithms.facts import Facts
from esker.algorithms.observer import Row
from esker.algorithms.snapshot import Snapshot
from esker.config.evolution import EvolutionConfig
from esker.engines.plan import Plan
from esker.engines.remote.server import WorkServer
from esker.errors import RunError
from esker.functions.batches import Batch, BatchTask
from esker.functions.parameters import FlatParameters
from esker.functions.task import Functions
from esker.noise.directions import Vector
from esker.noise.table import NoiseTable
from esker.strategies.strategy import Strategy
from esker.tasks.task import Job, Result

NOTHING = np.zeros(0)


class FunctionEvolution(Center):
    """Strategy, counters and the best centre so far; evaluations are counted where episodes would be."""

    config: EvolutionConfig
    certain = 1  # the best centre is the one with the highest reward

    def __init__(
        self,
        config: EvolutionConfig,
        strategy: Strategy,
        task: Functions | BatchTask,
        flat: FlatParameters,
        table: NoiseTable | None = None,
    ) -> None:
        super().__init__(config, strategy)
        self.task, self.flat, self.table = task, flat, table
        self.server: WorkServer | None = None  # whose workers evaluate members, if one does
        self.began_here = True  # whether the model has the values that the run began with
        self.best: torch.Tensor | None = None

    @property
    def starts_as_configured(self) -> bool:
        """Whether the run can be recomputed from its start, which is the model's own."""
        return self.began_here

    @property
    def final(self) -> Vector:
        """The parameters to end with: the best centre evaluated so far, or the last."""
        best = self.best if self.config.final == "best" else None
        return (self.strategy.center if best is None else best).numpy()

    def job(self) -> Job:
        """What workers must know of this generation."""
        return Job(self.strategy.ask())

    def plan(self) -> Plan | Batch:
        """The evaluations that make this generation."""
        config = self.config
        if not isinstance(self.task, Functions):
            members = np.full((self.strategy.population, config.evaluations_per_member), math.nan)
            return Batch(np.full(config.center_evaluations, math.nan), members)
        return Plan(
            self.strategy.population,
            episodes=config.evaluations_per_member,
            center=config.center_evaluations,
            refuse=self._refuse if config.on_error == "stop" else None,
        )

    def _refuse(self, result: Result) -> None:
        assert isinstance(self.task, Functions)
        where = self.task.describe(self.generation, result.item)
        raise RunError(f"{where}: {result.error}\n{result.trace}".rstrip())

    def facts(self, plan: Plan | Batch, seconds: float) -> Facts:
        """The facts of a complete generation."""
        batch = plan if isinstance(plan, Batch) else _as_batch(plan)
        fitness = batch.fitness.mean(axis=1)
        if np.isnan(fitness).all():  # checked before the commit: the state must be able to move by a fact
            first = None if isinstance(plan, Batch) else plan.of_members()[0].error
            raise RunError(f"generation {self.generation}: every member failed" + (f", the first: {first}" if first else ""))
        return Facts(
            generation=np.array([self.generation]),
            fitness=np.where(np.isnan(fitness), -np.inf, fitness),
            returns=fitness,
            lengths=np.ones(batch.fitness.shape, dtype=np.int32),
            center_returns=batch.center,
            center_lengths=np.ones(len(batch.center), dtype=np.int32),
            statistics_count=np.array([0]),
            statistics_total=NOTHING,
            statistics_squares=NOTHING,
            discarded_steps=np.array([0 if isinstance(plan, Batch) else plan.dropped_steps]),
            seconds=np.array([seconds]),
        )

    def move(self, facts: Facts) -> Row:
        """Tell the strategy, and keep the best centre so far."""
        if self.improves(facts):
            self.best = self.strategy.center.clone()
        return super().move(facts)

    def snapshot(self) -> Snapshot:
        """Everything that is state, ready to run the next generation."""
        snapshot = super().snapshot()
        best = {} if self.best is None else {"best_center": self.best.cpu().numpy()}
        return Snapshot(self.generation, snapshot.arrays | best, snapshot.values)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        super().restore(snapshot)
        best = snapshot.arrays.get("best_center")
        self.best = None if best is None else torch.from_numpy(np.array(best)).to(self.strategy.center.device)


def _as_batch(plan: Plan) -> Batch:
    """A plan's results in member order."""
    totals = np.array([plan.results[item].total for item in range(len(plan.results))])
    return Batch(totals[: plan.center], totals[plan.center :].reshape(plan.members, plan.episodes))
