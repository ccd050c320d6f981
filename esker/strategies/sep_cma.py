"""sep-CMA-ES (Ros & Hansen 2008): CMA-ES whose covariance is diagonal, linear in the number of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from esker.noise.population import Population
from esker.strategies.arguments import (
    NoiseArgument,
    check_squares,
    fitness_of,
    members_of,
)
from esker.strategies.cma_parts import Distribution, by_fitness, settings, tells_nothing
from esker.strategies.stopping import CONDITION, TOLERANCE
from esker.strategies.strategy import Update


class SepCMA(Distribution):
    """A centre m, a step size σ and a variance per parameter C. Members are m + σ√C·εᵢ; with recombination weights w

        m ← m + lr·σ√C Σ wᵢεᵢ        C ← (1 - c₁ - c_μ)·C + c₁·p_c² + c_μ·C Σ wᵢεᵢ²

    and σ follows the length of its evolution path. `population` is 4 + ⌊3 ln d⌋ unless given. Bad arguments raise
    ValueError.
    """

    def __init__(
        self,
        center: ArrayLike | torch.Tensor,
        *,
        population: int | None = None,
        sigma: float = 0.3,
        lr: float = 1.0,
        seed: int = 0,
        noise: NoiseArgument = "counter",
    ) -> None:
        super().__init__(center, population, sigma, lr, seed, noise)
        check_squares(self.noise)
        self.variance = np.ones(len(self._center), dtype=np.float32)

    def ask(self, members: slice | None = None) -> Population:
        """This generation's members, or a slice of them."""
        chosen, scale = members_of(members, self.population), np.float32(self.sigma) * np.sqrt(self.variance)
        return Population(self.center.numpy(), scale, self.generation, False, self.noise, chosen)

    def tell(self, fitness: ArrayLike | torch.Tensor) -> Update:
        """Move the distribution by the fitness of members 0, 1, … (higher is better, -inf: failed)."""
        values = fitness_of(fitness, self.population, antithetic=False)
        flat, sigma, d = tells_nothing(values), self.sigma, len(self._center)
        self._history.add(values)
        self.generation += 1
        if flat:
            return self._no_update()
        s = settings(d, len(values), separable=True)
        weights = by_fitness(values, s.weights)
        z, squares = self.noise.weighted_moments(self.generation - 1, weights, weights)
        y = np.sqrt(self.variance) * z
        moved = np.float32(self.lr * sigma) * y
        self._center = torch.from_numpy(self._center.numpy() + moved)
        factor, kept = self._paths.advance(s, z, y)
        self.variance = self.variance * (np.float32(1 - s.c_1 - s.c_mu + kept) + np.float32(s.c_mu) * squares)
        self.variance += np.float32(s.c_1) * np.square(self._paths.p_c, dtype=np.float32, casting="same_kind")
        self.sigma = sigma * factor
        return self._update(sigma, y, moved, weights)

    @property
    def stopped(self) -> str | None:
        """Why this distribution cannot improve any further, or None."""
        lengths = np.sqrt(self.variance)
        if self.sigma * float(lengths.max()) < TOLERANCE * self.first_sigma:
            return f"sigma fell below {TOLERANCE} of {self.first_sigma}"
        if float(lengths.max()) > float(lengths.min()) * CONDITION**0.5:
            return f"the condition number of the covariance exceeds {CONDITION:.0e}"
        center = self._center.numpy()
        if (center + np.float32(0.2 * self.sigma) * lengths == center).any():
            return "sigma is too small to move the centre"
        return self._history.verdict(self.population)

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes."""
        return super().state_dict() | {"variance": torch.from_numpy(self.variance.copy())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        super().load_state_dict(state)
        self.variance = torch.as_tensor(state["variance"]).numpy().copy()
