"""What CMA-ES and sep-CMA-ES share: weights, rates, paths, state (Hansen 2016, "The CMA Evolution Strategy: A Tutorial")."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from esker.noise.shaping import average_by_ties, check_fitness, entropy, running_total
from esker.strategies.arguments import (
    NoiseArgument,
    check_population,
    check_positive,
    check_same_size,
    default_population,
    noise_of,
    start_of,
)
from esker.strategies.stopping import History
from esker.strategies.strategy import Update

Floats = NDArray[np.float64]
Vector = NDArray[np.floating]


@dataclass(frozen=True)
class Settings:
    """The weights of the places of a generation, best first, and the rates that follow from them."""

    weights: Floats  # of the better half, summing to 1; the others have 0
    active: Floats  # the same, with negative weights for the worse half
    mu_eff: float
    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    chi: float  # the expected length of a standard normal vector


@lru_cache(maxsize=64)
def settings(d: int, members: int, separable: bool = False) -> Settings:
    """The tutorial's defaults for d parameters; a diagonal covariance learns (d + 2)/3 times as fast (Ros & Hansen 2008)."""
    raw = log((members + 1) / 2) - np.log(np.arange(1, members + 1))
    weights = np.maximum(raw, 0) / np.maximum(raw, 0).sum()
    mu_eff = 1 / float((weights**2).sum())
    c_sigma = (mu_eff + 2) / (d + mu_eff + 5)
    d_sigma = 1 + 2 * max(0.0, sqrt((mu_eff - 1) / (d + 1)) - 1) + c_sigma
    c_c = (4 + mu_eff / d) / (d + 4 + 2 * mu_eff / d)
    faster = (d + 2) / 3 if separable else 1.0
    c_1 = min(1.0, faster * 2 / ((d + 1.3) ** 2 + mu_eff))
    c_mu = min(1 - c_1, faster * 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((d + 2) ** 2 + mu_eff))
    chi = sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d**2))
    active = weights + _negative(raw, d, mu_eff, c_1, c_mu)
    return Settings(weights, active, mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, chi)


def _negative(raw: Floats, d: int, mu_eff: float, c_1: float, c_mu: float) -> Floats:
    """The negative weights of active CMA-ES (tutorial, equations 49 to 53)."""
    negative = np.minimum(raw, 0)
    if not negative.any() or c_mu == 0:
        return np.zeros_like(raw)
    mu_eff_negative = float(negative.sum() ** 2 / (negative**2).sum())
    limits = (1 + c_1 / c_mu, 1 + 2 * mu_eff_negative / (mu_eff + 2), (1 - c_1 - c_mu) / (d * c_mu))
    return negative * (min(limits) / -negative.sum())


def by_fitness(fitness: Floats, by_place: Floats) -> Floats:
    """Each member's weight, from those of the places (best first); ties share the mean of theirs."""
    return average_by_ties(fitness, running_total(by_place[::-1]))


def tells_nothing(fitness: Floats) -> bool:
    """Whether all members are equal. NaN, +inf, or a generation in which every member failed raises ValueError."""
    check_fitness(fitness)
    return bool(fitness.min() == fitness.max())


class Paths:
    """The evolution paths p_σ and p_c, from which the step size and the covariance learn over generations."""

    def __init__(self, dimension: int) -> None:
        self.p_sigma: Vector = np.zeros(dimension)
        self.p_c: Vector = np.zeros(dimension)
        self.updates = 0

    def advance(self, s: Settings, z: Vector, y: Vector) -> tuple[float, float]:
        """Lengthen the paths by the mean step, whitened (z) and as made (y).

        Returns the factor of sigma, and how much of the old covariance to keep in place of a p_c that was held back.
        """
        self.updates += 1
        d = len(self.p_sigma)
        self.p_sigma = (1 - s.c_sigma) * self.p_sigma + sqrt(s.c_sigma * (2 - s.c_sigma) * s.mu_eff) * z
        length = sqrt(float(np.square(self.p_sigma).sum()))
        expected = sqrt(1 - (1 - s.c_sigma) ** (2 * self.updates)) * s.chi
        steady = length < (1.4 + 2 / (d + 1)) * expected  # h_σ: p_c is held back while sigma is growing fast
        self.p_c = (1 - s.c_c) * self.p_c
        if steady:
            self.p_c += sqrt(s.c_c * (2 - s.c_c) * s.mu_eff) * y
        factor = exp(min(1.0, s.c_sigma / s.d_sigma * (length / s.chi - 1)))
        return factor, 0.0 if steady else s.c_1 * s.c_c * (2 - s.c_c)

    def state_dict(self) -> dict[str, Any]:
        """Both paths and how often they were lengthened."""
        paths = {"p_sigma": torch.tensor(self.p_sigma), "p_c": torch.tensor(self.p_c)}
        return {**paths, "updates": self.updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`."""
        self.p_sigma, self.p_c = (torch.as_tensor(state[name]).numpy().copy() for name in ("p_sigma", "p_c"))
        self.updates = int(state["updates"])


class Distribution:
    """A centre, a step size and evolution paths; a subclass adds its covariance. Bad arguments raise ValueError."""

    antithetic = False

    def __init__(
        self,
        center: ArrayLike | torch.Tensor,
        population: int | None,
        sigma: float,
        lr: float,
        seed: int,
        noise: NoiseArgument,
    ) -> None:
        self._center = start_of(center)
        dimension = len(self._center)
        self.population = default_population(dimension) if population is None else population
        check_population(self.population, antithetic=False)
        check_positive(sigma=sigma, lr=lr)
        self.sigma = self.first_sigma = float(sigma)
        self.lr = float(lr)
        self.generation = 0
        self.noise = noise_of(noise, seed, dimension)
        self._paths = Paths(dimension)
        self._history = History(dimension)

    @property
    def center(self) -> torch.Tensor:
        """The mean m of the distribution, a flat float32 vector."""
        return self._center

    def _update(self, sigma: float, step: Vector, moved: Vector, weights: Floats) -> Update:
        step_norm, update_norm, center_norm = (float(np.linalg.norm(v)) for v in (step, moved, self._center.numpy()))
        return Update(step_norm, update_norm, center_norm, sigma, self.lr, entropy(weights))

    def _no_update(self) -> Update:
        return Update(0.0, 0.0, float(np.linalg.norm(self._center.numpy())), self.sigma, self.lr, 0.0)

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes."""
        return {
            "center": self.center.clone(),
            "sigma": self.sigma,
            "paths": self._paths.state_dict(),
            "history": self._history.state_dict(),
            "generation": self.generation,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        center = torch.as_tensor(state["center"])
        check_same_size(center, self.center)
        check_positive(sigma=float(state["sigma"]))
        self._center = center.clone()
        self.sigma, self.generation = float(state["sigma"]), int(state["generation"])
        self._paths.load_state_dict(state["paths"])
        self._history.load_state_dict(state["history"])
