"""`EvolutionModule`, the interface of "Evolutionary Strategies in PyTorch": its scripts run with a new import line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from esker.algorithms.loop import Outcome
from esker.algorithms.observer import Row
from esker.algorithms.progress import streak
from esker.errors import UsageError
from esker.evolution import Evolution
from esker.functions.reward import accepts
from esker.functions.saving import pickle_weights
from esker.strategies.conventions import evolution_module


class PickledEvolution(Evolution):
    """An evolution that writes its weights as the original does: a list of tensors that `pickle.load` reads."""

    def _save(self, path: Path) -> None:
        weights = self.model
        assert isinstance(weights, list)
        pickle_weights(path, weights)


class EvolutionModule:
    """A list of parameters, and a reward that takes `weights=`; its names, its update, its threads, its tests.

    The update is theirs: independent members, normalised rewards, plain ascent. `decay` and `sigma_decay` apply once an
    iteration (theirs: once for every parameter tensor). Every `print_step` iterations the new weights are tested by one
    more call, and `consecutive_goal_stopping` counts those tests; without `reward_goal` (or the other way round) nothing
    stops early. `render=True` is passed to that call where the reward takes it. `cuda=True` falls back to the CPU.
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
        if consecutive_goal_stopping is not None and consecutive_goal_stopping < 1:
            raise UsageError(f"consecutive_goal_stopping is {consecutive_goal_stopping}; expected at least 1")
        self.reward_goal = reward_goal
        self.consecutive_goal_stopping = consecutive_goal_stopping
        self._reached = 0
        self._also = options.pop("on_iteration", None)
        renders = render_test and accepts(reward_function, "render")
        on_gpu = cuda and torch.cuda.is_available()
        self.evolution = PickledEvolution(
            list(parameters),
            reward_function,
            test_kwargs={"render": True} if renders else {},
            save_path=save_path,
            on_iteration=self._stops,
            workers=threadcount,
            executor="threads",
            device="cuda" if on_gpu else "cpu",
            final="last",
            **evolution_module(population_size, sigma, learning_rate, decay, sigma_decay),
            **options,
        )
        if render_test and not renders:
            self.evolution.note("render_test: the reward has no argument render, so it is not passed")
        if cuda and not on_gpu:
            self.evolution.note("cuda: no GPU can be used here, so members are evaluated on the CPU")
        if (reward_goal is None) != (consecutive_goal_stopping is None):
            given, missing = "reward_goal", "consecutive_goal_stopping"
            given, missing = (given, missing) if consecutive_goal_stopping is None else (missing, given)
            self.evolution.note(f"{given} is given without {missing}, so all iterations are run")

    def run(self, iterations: int, print_step: int = 10) -> list[torch.Tensor]:
        """Evolve and return the weights; the parameters that were given hold the same values."""
        weights: list[torch.Tensor] = self.evolution.run(iterations, report_every=print_step)
        outcome, wanted = self.evolution.outcome, self.consecutive_goal_stopping
        if outcome is not None and wanted is not None and self._reached >= wanted:
            self.evolution.outcome = Outcome(outcome.reason, goal_reached=True)
        return weights

    def _stops(self, row: Row) -> bool | str | None:
        """Count the tests that reach the goal; the user's own `on_iteration` has its say first."""
        wish = self._also(row) if self._also is not None else None
        goal, wanted, tested = self.reward_goal, self.consecutive_goal_stopping, self.evolution.tested
        if wish or goal is None or wanted is None or tested is None:
            return wish
        self._reached = streak(self._reached, tested, goal)
        return f"goal reached: reward ≥ {goal:g}, in {wanted} tests in a row" if self._reached >= wanted else None
