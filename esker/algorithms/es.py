"""Synchronous evolution strategies: evaluate a generation, commit it as a fact, move the centre by it.

The state moves by facts alone, so training and replaying are the same code: a resumed run cannot differ from one that
never stopped.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from esker.algorithms.center import Center
from esker.config.options import ESConfig
from esker.engines.plan import Plan
from esker.errors import RunError
from esker.noise.table import NoiseTable
from esker.policies.normalizer import Statistics
from esker.runs.checkpoints import Snapshot
from esker.runs.facts import Facts
from esker.tasks.episodes import Episodes
from esker.tasks.task import Job, Result


class EvolutionStrategy(Center):
    """The state of an ES run: strategy, observation statistics and counters, advanced by facts."""

    config: ESConfig

    def __init__(self, config: ESConfig, task: Episodes, center: np.ndarray, table: NoiseTable | None) -> None:
        super().__init__(config, center, task.noise(table))
        self.task = task
        self.statistics = Statistics.empty(task.statistics_size)
        self.progress.episode_cap = config.cap_initial if config.adaptive_cap == "threshold" else None

    @property
    def drawn(self) -> bool:
        """Whether the start follows from the configuration; a warm start and observed reference frames do not."""
        return self.config.init_from is None and not getattr(self.task.network, "normalized", False)

    def job(self) -> Job:
        """What workers must know of this generation; the observation statistics are frozen in it."""
        normalizer = self.statistics.normalizer() if self.task.normalize else None
        center = self.strategy.center.numpy()
        return Job(self.generation, center, self.strategy.sigma, normalizer, self.progress.episode_cap)

    def plan(self) -> Plan:
        """Which members make this generation."""
        return Plan(
            self.config.population,
            episodes=self.config.episodes_per_member,
            center=self.config.center_episodes,
            unit=2 if self.config.antithetic else 1,
            min_steps=self.config.min_steps,
            refuse=self._refuse if self.config.on_error == "stop" else None,
        )

    def _refuse(self, result: Result) -> None:
        where = self.task.describe(self.generation, result.item)
        raise RunError(f"{where}: {result.error}\n{result.trace}".rstrip())

    def facts(self, plan: Plan, seconds: float) -> Facts:
        """What leaves a complete generation. Statistics are merged in member order, never in order of arrival."""
        assert plan.complete is not None
        results, center = plan.of_members(), plan.of_center()
        members = (plan.complete, self.config.episodes_per_member)
        seen = [r for r in results if r.statistics is not None]
        moments = np.zeros((2, self.task.statistics_size))
        for result in seen:
            assert result.statistics is not None
            moments += result.statistics
        used = sum(r.length for r in results) + sum(r.length for r in center)
        evaluated = sum(r.length for r in plan.results.values())
        fitness = np.array([r.fitness for r in results]).reshape(members).mean(axis=1)
        if np.isnan(fitness).all():  # found before the commit: a fact must be one that the state can move by
            self._refuse(results[0])
        return Facts(
            generation=np.array([self.generation]),
            fitness=np.where(np.isnan(fitness), -np.inf, fitness),
            returns=np.array([r.total for r in results]).reshape(members).mean(axis=1),
            lengths=np.array([r.length for r in results], dtype=np.int32).reshape(members),
            center_returns=np.array([r.total for r in center]),
            center_lengths=np.array([r.length for r in center], dtype=np.int32),
            statistics_count=np.array([sum(r.length for r in seen)]),
            statistics_total=moments[0],
            statistics_squares=moments[1],
            discarded_steps=np.array([evaluated - used + plan.dropped_steps]),
            seconds=np.array([seconds]),
        )

    def advance(self, facts: Facts) -> dict[str, Any]:
        """Move everything by one generation; answers its row of the journal."""
        row = super().advance(facts)
        count = int(facts.statistics_count[0])
        self.statistics = self.statistics.plus(count, facts.statistics_total, facts.statistics_squares)
        self.progress.episode_cap = _next_cap(self.config, self.progress.episode_cap, facts.lengths)
        return row

    def begin_from(self, center: np.ndarray, statistics: Statistics | None = None, reference: Any = None) -> None:
        """Start from other parameters than drawn ones, with the statistics or the reference batch they were trained with."""
        self.task = self.task.with_reference(reference)
        self.strategy.center.copy_(torch.from_numpy(np.array(center)))
        if statistics is not None:
            self.statistics = statistics

    def snapshot(self) -> Snapshot:
        """Everything that is state, ready to run the next generation."""
        snapshot = super().snapshot()
        arrays = {"statistics.total": self.statistics.total, "statistics.squares": self.statistics.squares}
        reference = getattr(self.task.network, "reference", None)
        if reference is not None:
            arrays["reference"] = reference
        values = {"statistics_count": self.statistics.count}
        return Snapshot(self.generation, snapshot.arrays | arrays, snapshot.values | values)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        super().restore(snapshot)
        arrays, count = snapshot.arrays, snapshot.values["statistics_count"]
        self.task = self.task.with_reference(arrays.get("reference"))
        self.statistics = Statistics(count, arrays["statistics.total"].copy(), arrays["statistics.squares"].copy())


def _next_cap(config: ESConfig, cap: int | None, lengths: np.ndarray) -> int | None:
    """OpenAI's rule: grow when enough episodes reach the cap. pytorch-es's: none at first, then twice the mean length."""
    if config.adaptive_cap == "twice-mean":
        return max(1, round(2 * float(lengths.mean())))
    if config.adaptive_cap == "threshold" and cap is not None and (lengths >= cap).mean() >= config.cap_threshold:
        return math.ceil(cap * config.cap_factor)
    return cap
