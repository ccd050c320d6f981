"""OpenAI-ES on low-rank noise, entirely on one device: centre, optimizer and update stay where members are evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from esker.functions.lowrank.loaded import split
from esker.functions.lowrank.normals import normals
from esker.functions.lowrank.parts import Part, Parts
from esker.noise.population import by_direction
from esker.noise.shaping import check_fitness, entropy, shape
from esker.strategies.optimizers import MOMENTUM, OPTIMIZERS, set_rate
from esker.strategies.strategy import Update

NUMBERS = 1 << 27  # normals that an update holds at once
KEPT = 1 << 28  # normals that are kept from a generation's evaluation for its update


@dataclass(frozen=True)
class Rates:
    """What decides an update, as in `EvolutionConfig`."""

    population: int
    sigma: float
    lr: float
    optimizer: str = "adam"
    momentum: float | None = None
    max_speed: float | None = None
    weight_decay: float = 0.0
    anchor_decay: float = 0.0  # θ ← θ - lr·decay·(θ - θ₀) after each step
    shaping: str = "centered_rank"
    top_directions: int | None = None
    antithetic: bool = True
    lr_decay: float = 1.0
    sigma_decay: float = 1.0


class LowRankES:
    """g = 1/(Nσ) Σ wᵢεᵢ as one product of inner size N·r for each matrix; the optimizer steps on -g."""

    def __init__(self, start: torch.Tensor, parts: Parts, rates: Rates, seed: int, device: torch.device) -> None:
        self.parts = parts
        self.rates = rates
        self.seed = seed
        self.device = device
        self.population = rates.population
        self.sigma = float(rates.sigma)
        self.lr = float(rates.lr)
        self.generation = 0
        self.told: NDArray[np.float64] | None = None  # the fitness of the last generation, for replicas of this strategy
        self._drawn: tuple[int, range, torch.Tensor] | None = None  # generation, directions, their normals
        self._center = torch.nn.Parameter(start.to(device, torch.float32).clone(), requires_grad=False)
        self.anchor = self.center.clone() if rates.anchor_decay else None
        options: dict[str, Any] = {"lr": self.lr, "weight_decay": rates.weight_decay}
        if rates.optimizer in MOMENTUM:
            options["momentum"] = MOMENTUM[rates.optimizer] if rates.momentum is None else rates.momentum
        if rates.optimizer == "clipup":
            options["max_speed"] = rates.max_speed
        if device.type == "cuda" and rates.optimizer in ("adam", "adamw", "sgd"):
            options["fused"] = True  # one pass over the parameters
        self._optimizer = OPTIMIZERS[rates.optimizer]([self._center], **options)

    @property
    def center(self) -> torch.Tensor:
        """The current parameters θ, a flat float32 vector on the device."""
        return self._center.data

    @property
    def directions(self) -> int:
        """How many directions a generation explores."""
        return self.rates.population // (2 if self.rates.antithetic else 1)

    def noise(self, directions: range) -> torch.Tensor:
        """The normals of some of this generation's directions, which are not to be written to."""
        if self._drawn is not None:
            generation, drawn, kept = self._drawn
            if generation == self.generation and drawn.start <= directions.start and directions.stop <= drawn.stop:
                return kept[directions.start - drawn.start : directions.stop - drawn.start]
        self._drawn = None  # its memory goes first
        found = normals(self.seed, self.generation, directions, self.parts.count, self.device)
        if found.numel() <= KEPT:
            self._drawn = self.generation, directions, found
        return found

    def forget_noise(self) -> None:
        """Let the normals go that were kept from an evaluation for the update."""
        self._drawn = None

    def tell(self, fitness: ArrayLike) -> Update:
        """Move the centre by the fitness of members 0, 1, … of this generation (higher is better)."""
        values = np.asarray(fitness, dtype=np.float64)
        if values.shape != (self.rates.population,):
            raise ValueError(
                f"fitness has shape {values.shape}; expected one number for each of {self.rates.population} members"
            )
        chosen = np.arange(len(values)) if self.rates.top_directions is None else self._best(values)
        weights = np.zeros(len(values))
        weights[chosen] = shape(self.rates.shaping, values[chosen])
        by_pair = by_direction(weights, self.rates.antithetic)
        gradient = self.weighted_sum(by_pair / (len(chosen) * self.sigma))
        self.told = values
        return self._step(gradient, entropy(by_pair))

    def weighted_sum(self, weights: NDArray[np.float64]) -> torch.Tensor:
        """Σ weights[k]·εₖ over this generation's directions; zero weights cost nothing."""
        total = torch.zeros(self.parts.dimension, device=self.device)
        step = max(1, NUMBERS // self.parts.count)
        for start in range(0, len(weights), step):
            some = range(start, min(start + step, len(weights)))
            if not weights[start : some.stop].any():
                continue
            noise = self.noise(some)
            scale = torch.from_numpy(weights[start : some.stop].astype(np.float32)).to(self.device)
            left = noise[:, : self.parts.lefts] * scale[:, None]
            for part in self.parts.parts:
                self._add(total[part.at], part, left[:, part.left], noise[:, part.right])
        return total

    def _add(self, total: torch.Tensor, part: Part, left: torch.Tensor, right: torch.Tensor) -> None:
        """Add Σ wₖ Aₖ Bₖᵀ/√r of one part to its place: one product of inner size directions × r."""
        if part.matrix is None:
            total.add_(left.sum(0))
            return
        (rows, columns), rank = part.matrix, self.parts.rank
        a = split(left, 1, rows, rank).transpose(1, 2).reshape(-1, rows)  # (directions × r, rows); a view for rank 1
        b = split(right, 1, columns, rank).transpose(1, 2).reshape(-1, columns)
        total.view(rows, columns).addmm_(a.T, b, alpha=1 / sqrt(rank))

    def _best(self, fitness: np.ndarray) -> np.ndarray:
        """The members of the best directions, in member order; a direction is as good as the better of its members."""
        check_fitness(fitness)
        members = np.arange(len(fitness)).reshape(-1, 2 if self.rates.antithetic else 1)
        best = np.argsort(-fitness[members].max(axis=1), kind="stable")[: self.rates.top_directions]
        return members[np.sort(best)].ravel()

    def _step(self, gradient: torch.Tensor, weight_entropy: float) -> Update:
        norm, before = torch.linalg.vector_norm(gradient), self.center.clone()
        self._center.grad = gradient.neg_()
        set_rate(self._optimizer, self.lr)
        self._optimizer.step()
        self._center.grad = None
        if self.anchor is not None:
            self.center.lerp_(self.anchor, min(1.0, self.lr * self.rates.anchor_decay))
        moved = torch.linalg.vector_norm(before.sub_(self.center))
        norms = torch.stack([norm, moved, torch.linalg.vector_norm(self.center)]).tolist()  # one wait for the device
        done = Update(norms[0], norms[1], norms[2], self.sigma, self.lr, weight_entropy)
        self.generation += 1
        self.forget_noise()
        self.lr *= self.rates.lr_decay
        self.sigma *= self.rates.sigma_decay
        return done

    def digest(self) -> int:
        """A number by which replicas on other machines notice a centre of other bits."""
        return int(self.center.view(torch.int32).sum(dtype=torch.int64))

    def state_dict(self) -> dict[str, Any]:
        """Everything that moves, as copies on the CPU."""
        moments = {
            n: v.to("cpu", copy=True) for n, v in self._optimizer.state.get(self._center, {}).items() if v is not None
        }
        center = self.center.to("cpu", copy=True)
        return {"center": center, "optimizer": moments, "generation": self.generation, "lr": self.lr, "sigma": self.sigma}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        center = torch.as_tensor(state["center"])
        if center.shape != self.center.shape:
            raise ValueError(f"the state has {center.numel():,} parameters; this strategy has {self.center.numel():,}")
        self.center.copy_(center)
        self._optimizer.state.pop(self._center, None)
        if state["optimizer"]:
            self._optimizer.state[self._center] = {n: self._placed(n, v) for n, v in state["optimizer"].items()}
        self.generation, self.lr, self.sigma = state["generation"], state["lr"], state["sigma"]

    def _placed(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """A copy of a moment on the device; the count of steps stays on the CPU unless the optimizer is fused."""
        fused = self._optimizer.param_groups[0].get("fused")
        return value.to(self.device if value.ndim or (name == "step" and fused) else "cpu", copy=True)
