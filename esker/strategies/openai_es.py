"""OpenAI-ES (Salimans et al. 2017): Gaussian perturbations of a centre, shaped fitness, any torch optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from esker.noise.population import Population, by_direction
from esker.noise.shaping import check_fitness, entropy, shape
from esker.strategies.arguments import (
    NoiseArgument,
    check_population,
    check_positive,
    check_rate,
    check_same_size,
    check_shaping,
    fitness_of,
    members_of,
    noise_of,
    start_of,
)
from esker.strategies.optimizers import Ascent, OptimizerName
from esker.strategies.strategy import Update
from esker.system.torch_threads import one_torch_thread

SPREAD = 1 << 25  # products; fewer take one thread a few milliseconds, and the bits are the same on any number


class OpenAIES:
    """Ask for members, tell their fitness; the centre moves uphill.

    `tell` computes g = 1/(Nσ) Σ wᵢεᵢ and lets the optimizer step on -g; with `top_directions` the sum and N are over the
    members of the best directions only (Augmented Random Search, Mania et al. 2018). Copies that are given equal seeds and
    equal fitness stay bit-identical, wherever they live. Bad arguments raise ValueError.
    """

    def __init__(
        self,
        center: ArrayLike | torch.Tensor,
        *,
        population: int = 40,
        sigma: float = 0.02,
        lr: float = 0.01,
        optimizer: OptimizerName = "adam",
        momentum: float | None = None,
        max_speed: float | None = None,
        shaping: str = "centered_rank",
        weight_decay: float = 0.0,
        top_directions: int | None = None,
        antithetic: bool = True,
        lr_decay: float = 1.0,
        sigma_decay: float = 1.0,
        seed: int = 0,
        noise: NoiseArgument = "counter",
    ) -> None:
        start = start_of(center)
        check_population(population, antithetic)
        check_positive(sigma=sigma, lr=lr)
        check_shaping(shaping)
        directions = population // 2 if antithetic else population
        if top_directions is not None and not 1 <= top_directions <= directions:
            raise ValueError(
                f"top_directions is {top_directions}; expected 1 to {directions}, the directions of a generation"
            )
        self.population = population
        self.sigma = float(sigma)
        self.lr = float(lr)
        self.shaping = shaping
        self.top_directions = top_directions
        self.antithetic = antithetic
        self.lr_decay = lr_decay
        self.sigma_decay = sigma_decay
        self.generation = 0
        self.noise = noise_of(noise, seed, len(start))
        self._ascent = Ascent(start, optimizer, lr=lr, momentum=momentum, max_speed=max_speed, weight_decay=weight_decay)

    @property
    def center(self) -> torch.Tensor:
        """The current parameters θ, a flat float32 vector."""
        return self._ascent.center

    def ask(self, members: slice | None = None) -> Population:
        """This generation's members; a slice names some of them, so that only those are ever materialised."""
        chosen = members_of(members, self.population)
        return Population(self.center.numpy(), self.sigma, self.generation, self.antithetic, self.noise, chosen)

    def tell(self, fitness: ArrayLike | torch.Tensor) -> Update:
        """Move the centre by the fitness of members 0, 1, … of this generation, in that order (higher is better)."""
        values = fitness_of(fitness, self.population, self.antithetic)
        chosen = np.arange(len(values)) if self.top_directions is None else self._best(values)
        weights = np.zeros(len(values))
        weights[chosen] = shape(self.shaping, values[chosen])
        directions = by_direction(weights, self.antithetic)
        with one_torch_thread(len(directions) * len(self.center) < SPREAD):
            gradient = self.noise.weighted_sum(self.generation, directions)
            gradient /= np.float32(len(chosen) * self.sigma)  # g = 1/(Nσ) Σ wᵢεᵢ
            return self._step(gradient, entropy(directions))

    def _best(self, fitness: np.ndarray) -> np.ndarray:
        """The members of the best directions, in member order; a direction is as good as the better of its members."""
        check_fitness(fitness)
        members = np.arange(len(fitness)).reshape(-1, 2 if self.antithetic else 1)
        best = np.argsort(-fitness[members].max(axis=1), kind="stable")[: self.top_directions]
        return members[np.sort(best)].ravel()

    def _step(self, gradient: np.ndarray, weight_entropy: float) -> Update:
        moved = self._ascent.step(gradient, self.lr)
        center_norm = float(torch.linalg.vector_norm(self.center))
        done = Update(float(np.linalg.norm(gradient)), moved, center_norm, self.sigma, self.lr, weight_entropy)
        self.generation += 1
        self.lr *= self.lr_decay
        self.sigma *= self.sigma_decay
        return done

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes: centre, optimizer, schedules, generation."""
        return {
            "center": self.center.clone(),
            "optimizer": self._ascent.state_dict(),
            "generation": self.generation,
            "lr": self.lr,
            "sigma": self.sigma,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        center = torch.as_tensor(state["center"])
        check_same_size(center, self.center)
        check_positive(sigma=state["sigma"])
        check_rate(state["lr"])
        self._ascent.load(center, state["optimizer"])
        self.generation, self.lr, self.sigma = state["generation"], state["lr"], state["sigma"]
