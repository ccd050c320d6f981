"""A centre that facts move: what evolution by episodes and evolution by a reward have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from esker.config.options import ESConfig, EvolutionConfig
from esker.noise.directions import Noise, Row
from esker.runs.checkpoints import Snapshot
from esker.runs.facts import Facts
from esker.strategies.openai_es import OpenAIES
from esker.strategies.strategy import Update

OPTIMIZER = "optimizer."  # before the names of the optimizer's arrays in a snapshot


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


class Center:
    """A strategy and the counters of its run, advanced by facts."""

    def __init__(self, config: ESConfig | EvolutionConfig, center: Row, noise: Noise) -> None:
        self.config = config
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

    @property
    def generation(self) -> int:
        """The generation that is to be evaluated next."""
        return self.strategy.generation

    def improves(self, facts: Facts) -> bool:
        """Whether this generation's centre, by the mean of its evaluations, is the best so far."""
        center, best = float(facts.center_returns.mean()), self.progress.best_return
        return not math.isnan(center) and (best is None or center > best)

    def advance(self, facts: Facts) -> dict[str, Any]:
        """Move everything by one generation; answers its row of the journal."""
        progress, config = self.progress, self.config
        center_return = float(facts.center_returns.mean())
        if self.improves(facts):
            progress.best_return, progress.best_generation = center_return, int(facts.generation[0])
        update = self.strategy.tell(facts.fitness)
        progress.env_steps += int(facts.lengths.sum() + facts.center_lengths.sum())
        progress.episodes += facts.lengths.size + facts.center_lengths.size
        progress.discarded_steps += int(facts.discarded_steps[0])
        progress.wall_time += float(facts.seconds[0])
        reached = config.goal is not None and center_return >= config.goal
        progress.goal_streak = progress.goal_streak + 1 if reached else 0
        if config.sigma_adaptation is not None:
            self.strategy.sigma = next_sigma(config, self.strategy.sigma, facts)
        return journal_row(progress, facts, update)

    def snapshot(self) -> Snapshot:
        """Everything that is state, ready to run the next generation."""
        state = self.strategy.state_dict()
        moments = {name: value for name, value in state["optimizer"].items() if isinstance(value, torch.Tensor)}
        arrays = {"center": state["center"].numpy(), **{OPTIMIZER + name: value.numpy() for name, value in moments.items()}}
        return Snapshot(self.generation, arrays, {"lr": state["lr"], "sigma": state["sigma"], **vars(self.progress)})

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        arrays = {name: torch.from_numpy(np.array(array)) for name, array in snapshot.arrays.items()}
        moments = {name.removeprefix(OPTIMIZER): array for name, array in arrays.items() if name.startswith(OPTIMIZER)}
        values = snapshot.values
        state = {"center": arrays["center"], "optimizer": moments, "generation": snapshot.generation}
        self.strategy.load_state_dict({**state, "lr": values["lr"], "sigma": values["sigma"]})
        self.progress = Progress(**{name: values[name] for name in vars(Progress())})


def journal_row(progress: Progress, facts: Facts, update: Update) -> dict[str, Any]:
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


def next_sigma(config: ESConfig | EvolutionConfig, sigma: float, facts: Facts) -> float:
    """σ·exp(rate·(share - ¼)), share of members that beat the centre (ties count half), within a factor 10 of the start.

    On a slope or a plateau half of them do and sigma grows; near an optimum few do and it shrinks.
    """
    returns, center = facts.returns[np.isfinite(facts.returns)], float(facts.center_returns.mean())
    share = float((returns > center).mean() + 0.5 * (returns == center).mean())
    moved = sigma * math.exp((config.sigma_adaptation or 0.0) * (share - 0.25))
    return min(max(moved, config.sigma / 10), config.sigma * 10)
