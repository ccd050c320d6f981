"""`EvolutionModule`, the interface of "Evolutionary Strategies in PyTorch": its scripts run with a new import line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from esker.errors import UsageError
from esker.evolution import Evolution
from esker.strategies.conventions import evolution_module


class EvolutionModule:
    """A list of parameters, and a reward that takes `weights=`; its names, its update, its threads.

    The update is theirs: independent members, normalised rewards, plain ascent. Two things differ: `decay` and
    `sigma_decay` apply once an iteration (theirs: once for every parameter tensor), and the unperturbed weights are
    evaluated in every iteration, so `consecutive_goal_stopping` counts iterations.
    """

    def __init__(
        self,
        parameters: Sequence[torch.Tensor],
        reward_function: Callable[..., Any],
        population_size: int = 50,
        sigma: float = 0.1,
        learning_rate: float = 0.001,
        decay: float = 1.0,
        sigma_decay: float = 1.0,
        threadcount: int = 4,
        render_test: bool = False,
        cuda: bool = False,
        reward_goal: float | None = None,
        consecutive_goal_stopping: int | None = None,
        save_path: str | Path | None = None,
        **options: Any,
    ) -> None:
        if (reward_goal is None) != (consecutive_goal_stopping is None):
            raise UsageError("reward_goal and consecutive_goal_stopping go together; give both, or neither")
        self.evolution = Evolution(
            list(parameters),
            reward_function,
            test_kwargs={"render": True} if render_test else None,
            save_path=save_path,
            workers=threadcount,
            executor="threads",
            device="cuda" if cuda else "cpu",
            goal=reward_goal,
            patience=consecutive_goal_stopping,
            final="last",
            **evolution_module(population_size, sigma, learning_rate, decay, sigma_decay),
            **options,
        )

    def run(self, iterations: int, print_step: int = 10) -> list[torch.Tensor]:
        """Evolve, and answer the weights; the parameters that were given hold the same values."""
        weights: list[torch.Tensor] = self.evolution.run(iterations, report_every=print_step)
        return weights
