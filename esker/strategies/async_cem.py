"""Asynchronous CEM: the last N results are the population, and every new one moves the distribution a little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

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


class AsyncCEM:
    """Ask for one individual at a time, tell results in any order; nothing moves before N of them are in.

    On each result from then on: mean += (Σ λᵢ zᵢ - mean)/N, the variance is refitted to the ring's better half, and
    the damping decays at τ^(1/N), so that N results do what one generation of `CEM` does. `damp` is what the next result
    adds. Bad arguments raise ValueError.
    """

    def __init__(
        self,
        mean: Vector,
        population: int = 10,
        var: float | Vector = 1e-3,
        *,
        damp_init: float = 1e-3,
        damp_limit: float = 1e-5,
        damp_tau: float = 0.90,
        divide_variance: bool = True,
        seed: int = 0,
    ) -> None:
        if population < 2:
            raise ValueError(f"population is {population}; expected at least 2")
        if not 0 <= damp_tau <= 1:
            raise ValueError(f"damp_tau is {damp_tau}; expected a number from 0 to 1")
        self.mean = vector("mean", mean)
        self.var = variance(var, self.mean)
        self.population = population
        self.damp_limit = positive("damp_limit", damp_limit)
        self.damp_tau = float(damp_tau)
        self.damp = self._decayed(positive("damp_init", damp_init))
        self.seed = seed
        self.asked = 0
        self.told = 0
        self._ring = torch.zeros(population, len(self.mean), dtype=self.mean.dtype)
        self._fitness = np.zeros(population)
        self._weights = elite_weights(population // 2).to(self.mean.dtype)
        self._divisor = population // 2 if divide_variance else 1

    def ask(self) -> torch.Tensor:
        """One individual: mean + √var·ε."""
        self.asked += 1
        return self.mean + self.var.sqrt() * normals(self.seed, self.asked - 1, self.mean)

    def tell(self, individual: Vector, fitness: float) -> bool:
        """Put a result into the ring; returns whether the distribution moved. NaN or another size raise ValueError."""
        row = vector("individual", individual)
        if row.shape != self.mean.shape:
            raise ValueError(f"individual has {len(row)} parameters; expected {len(self.mean)}")
        self._fitness[self.told % self.population] = fitness_of("fitness", fitness)
        self._ring[self.told % self.population] = row
        self.told += 1
        if self.told < self.population:
            return False
        self._move()
        return True

    def _move(self) -> None:
        oldest = self.told % self.population  # of equals the earlier result wins, as in CEM
        order = torch.roll(torch.arange(self.population), -oldest)
        elites = elites_of(self._ring[order], self._fitness[order.numpy()], len(self._weights))
        self.var = self._weights @ (elites - self.mean) ** 2 / self._divisor + self.damp
        self.mean = self.mean + (self._weights @ elites - self.mean) / self.population
        self.damp = self._decayed(self.damp)

    def _decayed(self, damp: float) -> float:
        """rate·damp + (1-rate)·limit, with rate = τ^(1/N)."""
        rate = self.damp_tau ** (1 / self.population)
        return rate * damp + (1 - rate) * self.damp_limit

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes."""
        return {
            "mean": self.mean.clone(),
            "var": self.var.clone(),
            "ring": self._ring.clone(),
            "fitness": self._fitness.tolist(),
            "damp": self.damp,
            "asked": self.asked,
            "told": self.told,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state_dict`. Another dimension or population raises ValueError."""
        restore_tensors(state, ("mean", self.mean), ("var", self.var), ("ring", self._ring))
        self._fitness = np.array(state["fitness"], dtype=np.float64)
        self.damp, self.asked, self.told = state["damp"], state["asked"], state["told"]
