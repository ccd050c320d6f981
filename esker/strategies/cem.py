"""CEM with a diagonal covariance, as in CEM-RL (Pourchot and Sigaud 2019): sample, keep the better half, refit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from esker.strategies.gaussian import (
    Vector,
    elite_weights,
    elites_of,
    fitness_of,
    normals,
    positive,
    restore_tensors,
    variance,
    vector,
)


class CEM:
    """Ask for a population, tell individuals (which may have been trained meanwhile) and their fitness.

    With antithetic sampling, member i + N/2 mirrors member i. `divide_variance=False` is the paper's variance, without
    the division by N/2 that its repositories do. `damp` is what the next `tell` adds to the variance: as in the
    repositories, the damping decays before it is first added. Bad arguments raise ValueError.
    """

    def __init__(
        self,
        mean: Vector,
        population: int = 10,
        var: float | Vector = 1e-3,
        *,
        antithetic: bool = True,
        damp_init: float = 1e-3,
        damp_limit: float = 1e-5,
        damp_tau: float = 0.90,
        divide_variance: bool = True,
        seed: int = 0,
    ) -> None:
        if population < 2 or (antithetic and population % 2):
            raise ValueError(
                f"population is {population}; expected an even number of at least 2 (any with antithetic=False)"
            )
        if not 0 <= damp_tau <= 1:
            raise ValueError(f"damp_tau is {damp_tau}; expected a number from 0 to 1")
        self.mean = vector("mean", mean)
        self.var = variance(var, self.mean)
        self.population = population
        self.antithetic = antithetic
        self.damp_limit = positive("damp_limit", damp_limit)
        self.damp_tau = float(damp_tau)
        self.damp = self._decayed(positive("damp_init", damp_init))
        self.seed = seed
        self.generation = 0
        self._weights = elite_weights(population // 2).to(self.mean.dtype)
        self._divisor = population // 2 if divide_variance else 1

    def ask(self) -> torch.Tensor:
        """The individuals of this generation, (N, d): mean + √var·ε. Asking again gives the same ones."""
        drawn = self.population // 2 if self.antithetic else self.population
        first = self.generation * self.population
        noise = torch.stack([normals(self.seed, first + i, self.mean) for i in range(drawn)])
        if self.antithetic:
            noise = torch.cat([noise, -noise])
        return self.mean + self.var.sqrt() * noise

    def tell(self, individuals: ArrayLike | torch.Tensor, fitness: ArrayLike | torch.Tensor) -> None:
        """Refit mean and variance to the better half. Other shapes, or NaN fitness, raise ValueError."""
        rows = torch.as_tensor(individuals, dtype=self.mean.dtype).detach().cpu()
        values = np.array([fitness_of("fitness", f) for f in np.asarray(fitness, dtype=np.float64).reshape(-1)])
        if rows.shape != (self.population, len(self.mean)) or len(values) != self.population:
            raise ValueError(
                f"individuals have shape {tuple(rows.shape)} and fitness {values.shape}; "
                f"expected ({self.population}, {len(self.mean)}) and ({self.population},)"
            )
        elites = elites_of(rows, values, len(self._weights))
        self.mean, self.var = self._weights @ elites, self._spread(elites)
        self.damp = self._decayed(self.damp)
        self.generation += 1

    def _spread(self, elites: torch.Tensor) -> torch.Tensor:
        """1/(N/2) Σ λᵢ (zᵢ - old mean)² + damp."""
        return self._weights @ (elites - self.mean) ** 2 / self._divisor + self.damp

    def _decayed(self, damp: float) -> float:
        """τ·damp + (1-τ)·limit."""
        return self.damp_tau * damp + (1 - self.damp_tau) * self.damp_limit

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes."""
        return {"mean": self.mean.clone(), "var": self.var.clone(), "damp": self.damp, "generation": self.generation}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state_dict`. Another dimension raises ValueError."""
        restore_tensors(state, ("mean", self.mean), ("var", self.var))
        self.damp, self.generation = state["damp"], state["generation"]
