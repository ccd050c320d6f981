"""AES (Lee et al. 2020): an asynchronous evolution strategy without a population; each individual moves the mean at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

import torch

from esker.strategies.gaussian import Vector, fitness_of, normals, positive, restore_tensors, variance, vector
from esker.strategies.rules import RULES_THAT_SCALE, MeanUpdate, VarUpdate

MIN_STEP = 1e-3  # a smaller move of the mean does not change the variance


class AES:
    """Ask for one individual z, tell its fitness F and the mean's F̄: m ← (1-p)m + p·z.

    `param` is c: the scale of fitness differences, or for `baseline-absolute` the baseline itself. `fixed_n` is the n of
    `var_update="fixed"`. A missing one that is needed, and other bad arguments, raise ValueError.
    """

    def __init__(
        self,
        mean: Vector,
        var: float | Vector = 1e-3,
        mean_update: MeanUpdate = "baseline-relative",
        var_update: VarUpdate = "adaptive",
        param: float | None = None,
        fixed_n: float | None = None,
        negative_ratio: float = 0.0,
        *,
        var_floor: float = 1e-5,
        seed: int = 0,
    ) -> None:
        self.mean = vector("mean", mean)
        self.var = variance(var, self.mean)
        self.mean_update = mean_update
        self.var_update = var_update
        self.param = _checked_param(mean_update, param)
        self.fixed_n = _checked_n(var_update, fixed_n)
        if not 0 <= negative_ratio <= 1:
            raise ValueError(f"negative_ratio is {negative_ratio}; expected a number from 0 to 1")
        self.negative_ratio = float(negative_ratio)
        self.var_floor = positive("var_floor", var_floor)
        self.seed = seed
        self.asked = 0

    def ask(self) -> torch.Tensor:
        """One individual: mean + √var·ε."""
        self.asked += 1
        return self.mean + self.var.sqrt() * normals(self.seed, self.asked - 1, self.mean)

    def tell(self, individual: Vector, fitness: float, mean_fitness: float) -> float:
        """Move mean and variance; returns p. NaN fitness and individuals of another size raise ValueError."""
        z = vector("individual", individual).to(self.mean.dtype)
        if z.shape != self.mean.shape:
            raise ValueError(f"individual has {len(z)} parameters; expected {len(self.mean)}")
        p = self.step_size(fitness_of("fitness", fitness), fitness_of("mean_fitness", mean_fitness))
        old, self.mean = self.mean, (1 - p) * self.mean + p * z
        if p >= MIN_STEP:
            n = self.fixed_n if self.fixed_n is not None else max(1 / p - 1, 1.0)
            self.var = (self.var + ((z - old) * (z - self.mean) - self.var) / n).clamp_min(self.var_floor)
        return p

    def step_size(self, fitness: float, mean_fitness: float) -> float:
        """p, how far the mean goes towards the individual, by the rule of this strategy."""
        c = self.param
        # Equal infinities are equal fitness, and have no difference to compute with.
        difference = 0.0 if fitness == mean_fitness else fitness - mean_fitness
        match self.mean_update:
            case "fixed-linear":
                p = min(max(difference / c, -1.0), 1.0)
                return p if p >= 0 else p * self.negative_ratio
            case "fixed-sigmoid":
                return _sigmoid(difference / c)
            case "baseline-absolute":
                if fitness < c:
                    return 0.0
                if mean_fitness <= c:
                    return 0.5 if fitness == mean_fitness else 1.0
                return 0.5 if difference == 0 else _share(fitness - c, mean_fitness - c)
            case "baseline-relative":
                return _share(difference + c, c)

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes."""
        return {"mean": self.mean.clone(), "var": self.var.clone(), "asked": self.asked}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state_dict`. Another dimension raises ValueError."""
        restore_tensors(state, ("mean", self.mean), ("var", self.var))
        self.asked = state["asked"]


def _share(own: float, other: float) -> float:
    """own/(own + other), 0 below the baseline, with its limits at infinity."""
    if own <= 0 or math.isinf(other):
        return 0.0
    return 1.0 if math.isinf(own) else own / (own + other)


def _sigmoid(x: float) -> float:
    """1/(1+exp(-x)) without overflow."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    return math.exp(x) / (1 + math.exp(x))


def _checked_param(mean_update: str, param: float | None) -> float:
    if mean_update not in get_args(MeanUpdate):
        raise ValueError(f"mean_update is {mean_update!r}; expected one of {', '.join(get_args(MeanUpdate))}")
    if param is None or not math.isfinite(param):
        raise ValueError(f"param is {param}, and mean_update {mean_update!r} needs it: a finite number")
    if param <= 0 and mean_update in RULES_THAT_SCALE:
        raise ValueError(f"param is {param}; mean_update {mean_update!r} needs a scale above 0")
    return float(param)


def _checked_n(var_update: str, fixed_n: float | None) -> float | None:
    if var_update not in get_args(VarUpdate):
        raise ValueError(f"var_update is {var_update!r}; expected one of {', '.join(get_args(VarUpdate))}")
    if var_update == "adaptive":
        return None
    if fixed_n is None or not (fixed_n >= 1 and math.isfinite(fixed_n)):
        raise ValueError(f"fixed_n is {fixed_n}, and var_update 'fixed' needs it: a number of at least 1")
    return float(fixed_n)
