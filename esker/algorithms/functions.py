"""Evolution of a user's model by a user's reward: the state that `esker.Evolution` moves, generation by generation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from esker.algorithms.es import EvolutionStrategy, Progress, next_sigma
from esker.config import EvolutionConfig
from esker.engines.plan import Plan
from esker.errors import RunError
from esker.noise import Noise, Row
from esker.runs.checkpoints import Snapshot
from esker.runs.facts import Facts
from esker.strategies.openai_es import OpenAIES
from esker.tasks.batches import Batch
from esker.tasks.task import Job, Result

NOTHING = np.zeros(0)


class FunctionEvolution:
    """Strategy, counters and the best centre so far; evaluations are counted where episodes would be."""

    def __init__(
        self, config: EvolutionConfig, center: Row, noise: Noise, describe: Callable[[int, int], str] | None
    ) -> None:
        self.config = config
        self.describe = describe  # what to call an item in messages; None: generations are evaluated in batches
        self.strategy = OpenAIES(
            center,
            population=config.population,
            sigma=config.sigma,
            lr=config.lr,
            optimizer=config.optimizer,
            momentum=config.momentum,
            shaping=config.shaping,
            weight_decay=config.weight_decay,
            top_directions=config.top_directions,
            antithetic=config.antithetic,
            lr_decay=config.lr_decay,
            sigma_decay=config.sigma_decay,
            noise=noise,
        )
        self.progress = Progress()
        self.best: torch.Tensor | None = None

    @property
    def generation(self) -> int:
        """The generation that is to be evaluated next."""
        return self.strategy.generation

    @property
    def drawn(self) -> bool:
        """The start is the model's own, which whoever resumes has to compare."""
        return True

    @property
    def final(self) -> Row:
        """The parameters to end with: the best centre evaluated so far, or the last."""
        best = self.best if self.config.final == "best" else None
        return (self.strategy.center if best is None else best).numpy()

    def job(self) -> Job:
        """What workers must know of this generation."""
        return Job(self.generation, self.strategy.center.numpy(), self.strategy.sigma)

    def plan(self) -> Plan | Batch:
        """The evaluations that make this generation."""
        config = self.config
        if self.describe is None:
            members = np.full((config.population, config.evaluations_per_member), math.nan)
            return Batch(np.full(config.center_evaluations, math.nan), members)
        return Plan(
            config.population,
            episodes=config.evaluations_per_member,
            center=config.center_evaluations,
            refuse=self._refuse if config.on_error == "stop" else None,
        )

    def _refuse(self, result: Result) -> None:
        assert self.describe is not None
        where = self.describe(self.generation, result.item)
        raise RunError(f"{where}: {result.error}\n{result.trace}".rstrip())

    def facts(self, plan: Plan | Batch, seconds: float) -> Facts:
        """What leaves a complete generation."""
        batch = plan if isinstance(plan, Batch) else _as_batch(plan)
        fitness = batch.fitness.mean(axis=1)
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

    def improves(self, facts: Facts) -> bool:
        """Whether this generation's centre, by the mean of its evaluations, is the best so far."""
        center, best = float(facts.center_returns.mean()), self.progress.best_return
        return not math.isnan(center) and (best is None or center > best)

    def advance(self, facts: Facts) -> dict[str, Any]:
        """Move everything by one generation; answers its row of the journal."""
        progress, goal = self.progress, self.config.goal
        center_return = float(facts.center_returns.mean())
        if self.improves(facts):
            progress.best_return, progress.best_generation = center_return, self.generation
            self.best = self.strategy.center.clone()
        try:
            update = self.strategy.tell(facts.fitness)
        except ValueError as error:
            raise RunError(f"iteration {self.generation}: {error}") from error
        evaluations = facts.lengths.size + facts.center_lengths.size
        progress.env_steps += evaluations
        progress.episodes += evaluations
        progress.discarded_steps += int(facts.discarded_steps[0])
        progress.wall_time += float(facts.seconds[0])
        progress.goal_streak = progress.goal_streak + 1 if goal is not None and center_return >= goal else 0
        if self.config.sigma_adaptation is not None:
            self.strategy.sigma = next_sigma(self.config, self.strategy.sigma, facts)
        return EvolutionStrategy.row(progress, facts, update)

    def snapshot(self) -> Snapshot:
        """Everything that is state, ready to run the next generation."""
        state = self.strategy.state_dict()
        moments = {name: value for name, value in state["optimizer"].items() if isinstance(value, torch.Tensor)}
        arrays = {"center": state["center"].numpy(), **{f"optimizer.{name}": m.numpy() for name, m in moments.items()}}
        if self.best is not None:
            arrays["best_center"] = self.best.numpy()
        return Snapshot(self.generation, arrays, {"lr": state["lr"], "sigma": state["sigma"], **vars(self.progress)})

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        arrays = {name: torch.from_numpy(np.array(array)) for name, array in snapshot.arrays.items()}
        values = dict(snapshot.values)
        self.best = arrays.pop("best_center", None)
        state = {"center": arrays.pop("center"), "lr": values.pop("lr"), "sigma": values.pop("sigma")}
        moments = {name.removeprefix("optimizer."): array for name, array in arrays.items()}
        self.strategy.load_state_dict({**state, "optimizer": moments, "generation": snapshot.generation})
        self.progress = Progress(**values)


def _as_batch(plan: Plan) -> Batch:
    """A plan's results in member order."""
    totals = np.array([plan.results[item].total for item in range(len(plan.results))])
    return Batch(totals[: plan.center], totals[plan.center :].reshape(plan.members, plan.episodes))
