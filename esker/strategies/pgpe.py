"""PGPE (Sehnke et al. 2010) with symmetric sampling, as used with ClipUp by Toklu et al. (2020)."""

from __future__ import annotations

from math import sqrt
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
    check_rate,
    check_same_size,
    check_shaping,
    check_squares,
    fitness_of,
    members_of,
    noise_of,
    scales_of,
    start_of,
)
from esker.strategies.optimizers import Ascent, OptimizerName, length
from esker.strategies.strategy import Update

RADIUS = 15  # maximum speeds that the first standard deviations span (Toklu et al. 2020)


class PGPE:
    """A centre and a standard deviation per parameter, both moved along estimated gradients of the expected fitness.

    Members 2k and 2k+1 are θ ± σεₖ. Over the K pairs of a generation, with shaped fitness w (mean zero):

        ∇θ = 1/K Σ ½(w⁺ - w⁻)·σε        the optimizer steps on it
        ∇σ = 1/K Σ ½(w⁺ + w⁻)·σ(ε² - 1)     σ ← σ + stdev_lr·∇σ, at most by the share `stdev_max_change`

    `sigma` is the first standard deviation, one number or one per parameter. ClipUp's `lr`, if none is given, is half the
    maximum speed |σ|/15 that its authors recommend; `lr_decay` shrinks both. Bad arguments raise ValueError.
    """

    antithetic = True

    def __init__(
        self,
        center: ArrayLike | torch.Tensor,
        *,
        population: int = 200,
        sigma: float | ArrayLike = 0.1,
        lr: float | None = None,
        stdev_lr: float = 0.1,
        stdev_max_change: float | None = 0.2,
        optimizer: OptimizerName = "clipup",
        momentum: float | None = None,
        max_speed: float | None = None,
        weight_decay: float = 0.0,
        lr_decay: float = 1.0,
        shaping: str = "centered_rank",
        seed: int = 0,
        noise: NoiseArgument = "counter",
    ) -> None:
        start = start_of(center)
        check_population(population, antithetic=True)
        check_shaping(shaping)
        self.stdev = scales_of(sigma, len(start))
        if lr is None:
            lr = 0.5 * (max_speed or float(self.stdev.mean()) * sqrt(len(start)) / RADIUS) if optimizer == "clipup" else 0.01
        check_positive(lr=lr, lr_decay=lr_decay)
        if not stdev_lr >= 0:
            raise ValueError(f"stdev_lr is {stdev_lr}; expected a number above 0, or 0 to keep sigma as it is")
        if stdev_max_change is not None and not 0 < stdev_max_change < 1:
            raise ValueError(f"stdev_max_change is {stdev_max_change}; expected a share between 0 and 1, or None")
        self.population = population
        self.lr = float(lr)
        self.lr_decay = lr_decay
        self.stdev_lr = stdev_lr
        self.stdev_max_change = stdev_max_change
        self.shaping = shaping
        self.generation = 0
        self.noise = noise_of(noise, seed, len(start))
        check_squares(self.noise)
        self._ascent = Ascent(start, optimizer, lr=lr, momentum=momentum, max_speed=max_speed, weight_decay=weight_decay)

    @property
    def center(self) -> torch.Tensor:
        """The current parameters θ, a flat float32 vector."""
        return self._ascent.center

    @property
    def sigma(self) -> float:
        """The mean standard deviation."""
        return float(self.stdev.mean(dtype=np.float64))

    def ask(self, members: slice | None = None) -> Population:
        """This generation's members, or a slice of them."""
        chosen = members_of(members, self.population)
        return Population(self._ascent.values, self.stdev, self.generation, True, self.noise, chosen)

    def tell(self, fitness: ArrayLike | torch.Tensor) -> Update:
        """Move centre and standard deviations by the fitness of members 0, 1, … (higher is better, -inf: failed)."""
        values = fitness_of(fitness, self.population, antithetic=True)
        weights = shape(self.shaping, values) / len(values)  # ½/K, since there are two members to a pair
        linear, square = by_direction(weights, True), of_squares(weights, True)
        before = self.sigma
        first, second = self.noise.weighted_moments(self.generation, linear, square)
        gradient = self.stdev * first
        change = np.float32(self.stdev_lr) * (self.stdev * (second - np.float32(square.sum())))
        if self.stdev_max_change is not None:
            most = np.float32(self.stdev_max_change) * self.stdev
            change = np.maximum(np.minimum(change, most), -most)
        moved = self._ascent.step(gradient, self.lr)
        self.stdev = self.stdev + change
        done = Update(length(gradient), moved, length(self._ascent.values), before, self.lr, entropy(linear))
        self.generation += 1
        self.lr *= self.lr_decay
        return done

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes: centre, standard deviations, optimizer, generation, a learning rate that decays."""
        return {
            "center": self.center.clone(),
            "stdev": torch.from_numpy(self.stdev.copy()),
            "optimizer": self._ascent.state_dict(),
            "generation": self.generation,
        } | ({"lr": self.lr} if self.lr_decay != 1.0 else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        center = torch.as_tensor(state["center"])
        check_same_size(center, self.center)
        self._ascent.load(center, state["optimizer"])
        self.stdev = torch.as_tensor(state["stdev"]).numpy().copy()
        self.generation = state["generation"]
        if "lr" in state:
            check_rate(state["lr"])
            self.lr = state["lr"]
        else:  # a rate that does not decay; in former versions it never did
            self.lr_decay = 1.0
