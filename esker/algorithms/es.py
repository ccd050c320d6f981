"""Synchronous evolution strategies: evaluate a generation, commit it as a fact, move the centre by it.

The state moves by facts alone, so training and replaying are the same code: a resumed run cannot differ from one that
never stopped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from esker.config import ESConfig, UpdateOptions
from esker.engines.plan import Plan
from esker.errors import RunError
from esker.noise import NoiseTable
from esker.policies.normalizer import Statistics
from esker.runs.checkpoints import Snapshot
from esker.runs.facts import Facts
from esker.strategies.openai_es import OpenAIES, Update
from esker.tasks.episodes import Episodes
from esker.tasks.task import Job, Result


@dataclass
class Progress:
    """The counters of a run; part of its state."""

    env_steps: int = 0
    episodes: int = 0
    discarded_steps: int = 0
    wall_time: float = 0.0
    best_return: float | None = None
    best_generation: int | None = None
    goal_streak: int = 0
    episode_cap: int | None = None


class EvolutionStrategy:
    """The state of an ES run: strategy, observation statistics and counters, advanced by facts."""

    def __init__(self, config: ESConfig, task: Episodes, center: np.ndarray, table: NoiseTable | None) -> None:
        self.config = config
        self.task = task
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
            noise=task.noise(table),
        )
        self.statistics = Statistics.empty(task.statistics_size)
        self.progress = Progress(episode_cap=config.cap_initial if config.adaptive_cap else None)

    @property
    def generation(self) -> int:
        """The generation that is to be evaluated next."""
        return self.strategy.generation

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

    def improves(self, facts: Facts) -> bool:
        """Whether this generation's centre, by the mean of its episodes, is the best so far."""
        center = float(facts.center_returns.mean())
        return not math.isnan(center) and (self.progress.best_return is None or center > self.progress.best_return)

    def advance(self, facts: Facts) -> dict[str, Any]:
        """Move everything by one generation; answers its row of the journal."""
        progress, config = self.progress, self.config
        improved = self.improves(facts)
        update = self.strategy.tell(facts.fitness)
        count = int(facts.statistics_count[0])
        self.statistics = self.statistics.plus(count, facts.statistics_total, facts.statistics_squares)
        progress.env_steps += int(facts.lengths.sum() + facts.center_lengths.sum())
        progress.episodes += facts.lengths.size + facts.center_lengths.size
        progress.discarded_steps += int(facts.discarded_steps[0])
        progress.wall_time += float(facts.seconds[0])
        center_return = float(facts.center_returns.mean())
        if improved:
            progress.best_return, progress.best_generation = center_return, int(facts.generation[0])
        reached = config.goal is not None and center_return >= config.goal
        progress.goal_streak = progress.goal_streak + 1 if reached else 0
        row = self.row(progress, facts, update)
        if config.sigma_adaptation is not None:
            self.strategy.sigma = next_sigma(config, self.strategy.sigma, facts)
        progress.episode_cap = _next_cap(config, progress.episode_cap, facts.lengths)
        return row

    def begin_from(self, center: np.ndarray, statistics: Statistics | None = None, reference: Any = None) -> None:
        """Start from other parameters than drawn ones, with the statistics or the reference batch they were trained with."""
        self.task = self.task.with_reference(reference)
        self.strategy.center.copy_(torch.from_numpy(np.array(center)))
        if statistics is not None:
            self.statistics = statistics

    @staticmethod
    def row(progress: Progress, facts: Facts, update: Update) -> dict[str, Any]:
        """A generation as the journal has it."""
        returns = facts.returns[np.isfinite(facts.returns)]
        center_return = float(facts.center_returns.mean())
        seconds = float(facts.seconds[0])
        steps = int(facts.lengths.sum() + facts.center_lengths.sum())
        return {
            "generation": int(facts.generation[0]),
            "env_steps": progress.env_steps,
            "episodes": progress.episodes,
            "wall_time": progress.wall_time,
            "return_mean": float(returns.mean()),
            "return_max": float(returns.max()),
            "return_min": float(returns.min()),
            "return_std": float(returns.std()),
            "center_return": None if math.isnan(center_return) else center_return,
            "center_rank": 1 + int((returns > center_return).sum()),
            "members": len(facts.fitness),
            "failed_members": int(np.isneginf(facts.fitness).sum()),
            "episode_length_mean": float(facts.lengths.mean()),
            "episode_cap": progress.episode_cap,
            "steps_per_second": steps / seconds if seconds > 0 else None,
            "sigma": update.sigma,
            "lr": update.lr,
            "gradient_norm": update.gradient_norm,
            "update_ratio": update.update_norm / update.center_norm if update.center_norm else 0.0,
            "weight_entropy": update.weight_entropy,
            "best_return": progress.best_return,
            "goal_streak": progress.goal_streak,
            "discarded_steps": progress.discarded_steps,
        }

    def snapshot(self) -> Snapshot:
        """Everything that is state, ready to run the next generation."""
        state = self.strategy.state_dict()
        moments = {name: value for name, value in state["optimizer"].items() if isinstance(value, torch.Tensor)}
        arrays = {
            "center": state["center"].numpy(),
            "statistics.total": self.statistics.total,
            "statistics.squares": self.statistics.squares,
            **{f"optimizer.{name}": value.numpy() for name, value in moments.items()},
        }
        reference = getattr(self.task.network, "reference", None)
        if reference is not None:
            arrays["reference"] = reference
        values = {"lr": state["lr"], "sigma": state["sigma"], "statistics_count": self.statistics.count}
        return Snapshot(self.generation, arrays, values | vars(self.progress))

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        arrays, values = snapshot.arrays, dict(snapshot.values)
        self.task = self.task.with_reference(arrays.get("reference"))
        moments = {
            name.removeprefix("optimizer."): torch.from_numpy(np.array(a))
            for name, a in arrays.items()
            if name.startswith("optimizer.")
        }
        self.strategy.load_state_dict(
            {
                "center": torch.from_numpy(np.array(arrays["center"])),
                "optimizer": moments,
                "generation": snapshot.generation,
                "lr": values.pop("lr"),
                "sigma": values.pop("sigma"),
            }
        )
        count = values.pop("statistics_count")
        self.statistics = Statistics(count, arrays["statistics.total"].copy(), arrays["statistics.squares"].copy())
        self.progress = Progress(**values)


def next_sigma(config: UpdateOptions, sigma: float, facts: Facts) -> float:
    """σ·exp(rate·(share - ¼)), share of members that beat the centre (ties count half), within a factor 10 of the start.

    On a slope or a plateau half of them do and sigma grows; near an optimum few do and it shrinks.
    """
    returns, center = facts.returns[np.isfinite(facts.returns)], float(facts.center_returns.mean())
    share = float((returns > center).mean() + 0.5 * (returns == center).mean())
    moved = sigma * math.exp((config.sigma_adaptation or 0.0) * (share - 0.25))
    return min(max(moved, config.sigma / 10), config.sigma * 10)


def _next_cap(config: ESConfig, cap: int | None, lengths: np.ndarray) -> int | None:
    """OpenAI's rule: grow when enough episodes reach the cap. pytorch-es's: twice the mean length."""
    if config.adaptive_cap == "twice-mean":
        return max(1, round(2 * float(lengths.mean())))
    if config.adaptive_cap == "threshold" and cap is not None and (lengths >= cap).mean() >= config.cap_threshold:
        return math.ceil(cap * config.cap_factor)
    return cap
