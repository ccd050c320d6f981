"""SNES (Wierstra et al. 2014): separable natural evolution strategy, the natural gradient of a diagonal Gaussian."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from esker.noise.population import Population, by_direction, of_squares
from esker.noise.shaping import entropy, shape
from esker.strategies.arguments import (
    NoiseArgument,
    check_population,
    check_positive,
    check_same_size,
    check_shaping,
    check_squares,
    default_population,
    fitness_of,
    members_of,
    noise_of,
    scales_of,
    start_of,
)
from esker.strategies.strategy import Update


class SNES:
    """A centre and a standard deviation per parameter, moved along the natural gradient.

    Members are μ + σεᵢ; with the utilities u of their ranks

        μ ← μ + lr·σ Σ uᵢεᵢ        σ ← σ·exp(½·stdev_lr Σ uᵢ(εᵢ² - 1))

    `stdev_lr` is (3 + ln d)/(5√d) and `population` 4 + ⌊3 ln d⌋ unless given. Bad arguments raise ValueError.
    """

    def __init__(
        self,
        center: ArrayLike | torch.Tensor,
        *,
        population: int | None = None,
        sigma: float | ArrayLike = 0.1,
        lr: float = 1.0,
        stdev_lr: float | None = None,
        shaping: str = "log_utility",
        antithetic: bool = False,
        seed: int = 0,
        noise: NoiseArgument = "counter",
    ) -> None:
        self._center = start_of(center)
        dimension = len(self._center)
        if population is None:
            population = default_population(dimension)
            population += population % 2 if antithetic else 0
        if stdev_lr is None:
            stdev_lr = (3 + log(dimension)) / (5 * sqrt(dimension))
        check_population(population, antithetic)
        check_positive(lr=lr, stdev_lr=stdev_lr)
        check_shaping(shaping)
        self.population = population
        self.stdev = scales_of(sigma, dimension)
        self.lr = float(lr)
        self.stdev_lr = stdev_lr
        self.shaping = shaping
        self.antithetic = antithetic
        self.generation = 0
        self.noise = noise_of(noise, seed, dimension)
        check_squares(self.noise)

    @property
    def center(self) -> torch.Tensor:
        """The mean μ of the distribution, a flat float32 vector."""
        return self._center

    @property
    def sigma(self) -> float:
        """The mean standard deviation."""
        return float(self.stdev.mean(dtype=np.float64))

    def ask(self, members: slice | None = None) -> Population:
        """This generation's members, or a slice of them."""
        chosen = members_of(members, self.population)
        return Population(self.center.numpy(), self.stdev, self.generation, self.antithetic, self.noise, chosen)

    def tell(self, fitness: ArrayLike | torch.Tensor) -> Update:
        """Move centre and standard deviations by the fitness of members 0, 1, … (higher is better, -inf: failed)."""
        utilities = shape(self.shaping, fitness_of(fitness, self.population, self.antithetic))
        linear, square = by_direction(utilities, self.antithetic), of_squares(utilities, self.antithetic)
        before = self.sigma
        first, second = self.noise.weighted_moments(self.generation, linear, square)
        step = self.stdev * first
        moved = np.float32(self.lr) * step
        self._center = torch.from_numpy(self._center.numpy() + moved)
        second -= np.float32(square.sum())
        self.stdev = self.stdev * np.exp(np.float32(0.5 * self.stdev_lr) * second)
        self.generation += 1
        gradient_norm, update_norm, center_norm = (float(np.linalg.norm(v)) for v in (step, moved, self._center.numpy()))
        return Update(gradient_norm, update_norm, center_norm, before, self.lr, entropy(linear))

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes: centre, standard deviations, generation."""
        return {
            "center": self.center.clone(),
            "stdev": torch.from_numpy(self.stdev.copy()),
            "generation": self.generation,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        center = torch.as_tensor(state["center"])
        check_same_size(center, self.center)
        self._center = center.clone()
        self.stdev = torch.as_tensor(state["stdev"]).numpy().copy()
        self.generation = state["generation"]
