"""OpenAI-ES (Salimans et al. 2017): Gaussian perturbations of a centre, shaped fitness, any torch optimizer."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from esker.noise.counter import CounterNoise
from esker.noise.directions import Noise
from esker.noise.population import Population, by_direction
from esker.noise.shaping import SHAPINGS, check_fitness, entropy, shape
from esker.noise.table import DEFAULT_TABLE_SIZE, NoiseTable, TableNoise
from esker.strategies.strategy import Update
from esker.system.torch_threads import one_torch_thread

OptimizerName = Literal["adam", "adamw", "sgd", "rmsprop"]
OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
}
SPREAD = 1 << 25  # products; fewer take one thread a few milliseconds, and the bits are the same on any number


class OpenAIES:
    """Ask for members, tell their fitness, and the centre climbs.

    `tell` computes g = 1/(Nσ) Σ wᵢεᵢ and lets the optimizer step on -g; with `top_directions` the sum and N are over the
    members of the best directions only (Augmented Random Search, Mania et al. 2018). Copies that are given equal seeds and
    equal fitness stay bit-identical, wherever they live. Bad arguments raise ValueError.
    """

    def __init__(
        self,
        center: ArrayLike | torch.Tensor,
        *,
        population: int = 100,
        sigma: float = 0.02,
        lr: float = 0.01,
        optimizer: OptimizerName = "adam",
        momentum: float = 0.0,
        shaping: str = "centered_rank",
        weight_decay: float = 0.0,
        top_directions: int | None = None,
        antithetic: bool = True,
        lr_decay: float = 1.0,
        sigma_decay: float = 1.0,
        seed: int = 0,
        noise: Noise | Literal["table", "counter"] = "counter",
    ) -> None:
        start = torch.as_tensor(center, dtype=torch.float32, device="cpu").detach().clone().contiguous()
        _check(start, population, sigma, lr, optimizer, momentum, shaping, antithetic, top_directions)
        self.population = population
        self.sigma = float(sigma)
        self.lr = float(lr)
        self.shaping = shaping
        self.top_directions = top_directions
        self.antithetic = antithetic
        self.lr_decay = lr_decay
        self.sigma_decay = sigma_decay
        self.generation = 0
        self.noise = _noise(noise, seed, len(start))
        self._center = torch.nn.Parameter(start, requires_grad=False)
        options: dict[str, Any] = {"lr": self.lr, "weight_decay": weight_decay}
        if optimizer in ("sgd", "rmsprop"):
            options["momentum"] = momentum
        self._optimizer = OPTIMIZERS[optimizer]([self._center], **options)

    @property
    def center(self) -> torch.Tensor:
        """The current parameters θ, a flat float32 vector."""
        return self._center.data

    def ask(self, members: slice | None = None) -> Population:
        """This generation's members; a slice names some of them, so that only those are ever materialised."""
        if not isinstance(members, slice | None):
            raise TypeError(f"ask({members!r}): expected a slice of members, as ask(slice(0, 8))")
        chosen = range(self.population)[members or slice(None)]
        return Population(self.center.numpy(), self.sigma, self.generation, self.antithetic, self.noise, chosen)

    def tell(self, fitness: ArrayLike | torch.Tensor) -> Update:
        """Move the centre by the fitness of members 0, 1, … of this generation, in that order (higher is better)."""
        numbers = fitness.detach().cpu() if isinstance(fitness, torch.Tensor) else fitness
        values = np.asarray(numbers, dtype=np.float64)
        if values.ndim != 1 or len(values) < self.population or (self.antithetic and len(values) % 2):
            raise ValueError(f"fitness has shape {values.shape}; expected one number for each of {self.population} members")
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
        before = self.center.clone()
        self._center.grad = torch.from_numpy(-gradient)
        self._optimizer.param_groups[0]["lr"] = self.lr
        self._optimizer.step()
        self._center.grad = None
        done = Update(
            float(np.linalg.norm(gradient)),
            float(torch.linalg.vector_norm(self.center - before)),
            float(torch.linalg.vector_norm(self.center)),
            self.sigma,
            self.lr,
            weight_entropy,
        )
        self.generation += 1
        self.lr *= self.lr_decay
        self.sigma *= self.sigma_decay
        return done

    def state_dict(self) -> dict[str, Any]:
        """Everything that moves: centre, optimizer, schedules, generation."""
        moments = {name: _copy(value) for name, value in self._optimizer.state.get(self._center, {}).items()}
        return {
            "center": self.center.clone(),
            "optimizer": moments,
            "generation": self.generation,
            "lr": self.lr,
            "sigma": self.sigma,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        center = torch.as_tensor(state["center"])
        if center.shape != self.center.shape:
            raise ValueError(f"the state has {center.numel():,} parameters; this strategy has {self.center.numel():,}")
        self.center.copy_(center)
        moments = {name: _copy(value) for name, value in state["optimizer"].items()}
        if moments:
            self._optimizer.state[self._center] = moments
        else:
            self._optimizer.state.pop(self._center, None)
        self.generation, self.lr, self.sigma = state["generation"], state["lr"], state["sigma"]


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def _noise(noise: Noise | str, seed: int, dimension: int) -> Noise:
    if noise == "counter":
        return CounterNoise(seed, dimension)
    if noise == "table":
        return TableNoise(NoiseTable.create(seed, max(DEFAULT_TABLE_SIZE, 2 * dimension)), seed, dimension)
    if isinstance(noise, str):
        raise ValueError(f"noise is {noise!r}; expected 'table', 'counter' or a noise object")
    return noise


def _check(
    center: torch.Tensor,
    population: int,
    sigma: float,
    lr: float,
    optimizer: str,
    momentum: float,
    shaping: str,
    antithetic: bool,
    top_directions: int | None,
) -> None:
    if center.ndim != 1 or len(center) == 0:
        raise ValueError(f"center has shape {tuple(center.shape)}; expected a flat vector of at least one parameter")
    if not torch.isfinite(center).all():
        raise ValueError("center holds NaN or infinity; expected finite parameters")
    if population < 2 or (antithetic and population % 2):
        raise ValueError(f"population is {population}; expected an even number of at least 2 (any with antithetic=False)")
    if not sigma > 0:
        raise ValueError(f"sigma is {sigma}; expected a number above 0")
    if not lr > 0:
        raise ValueError(f"lr is {lr}; expected a number above 0")
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer is {optimizer!r}; expected one of {', '.join(OPTIMIZERS)}")
    if momentum and optimizer not in ("sgd", "rmsprop"):
        raise ValueError(f"momentum is {momentum}; {optimizer} has none (use sgd or rmsprop)")
    directions = population // 2 if antithetic else population
    if top_directions is not None and not 1 <= top_directions <= directions:
        raise ValueError(f"top_directions is {top_directions}; expected 1 to {directions}, the directions of a generation")
    if shaping not in SHAPINGS:
        raise ValueError(f"shaping is {shaping!r}; expected one of {', '.join(SHAPINGS)}")
