"""What the strategies over N(mean, diag(var)) share: checked vectors, addressed draws, elites."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from esker.noise.address import Purpose, generator

Vector = ArrayLike | torch.Tensor


def vector(name: str, value: Vector) -> torch.Tensor:
    """A new flat float tensor. Another shape, or values that are not finite, raise ValueError."""
    tensor = torch.as_tensor(value).detach().to("cpu", copy=True).contiguous()
    tensor = tensor if tensor.is_floating_point() else tensor.float()
    if tensor.ndim != 1 or len(tensor) == 0:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; expected a flat vector of at least one parameter")
    if not torch.isfinite(tensor).all():
        raise ValueError(f"{name} holds NaN or infinity; expected finite parameters")
    return tensor


def variance(value: float | Vector, mean: torch.Tensor) -> torch.Tensor:
    """A positive variance for each parameter, from one number or a vector. Anything else raises ValueError."""
    tensor = torch.as_tensor(value, dtype=mean.dtype).detach().cpu()
    if tensor.ndim and tensor.shape != mean.shape:
        raise ValueError(f"var has shape {tuple(tensor.shape)}; expected a number or one for each of {len(mean)} parameters")
    if not (torch.isfinite(tensor).all() and (tensor > 0).all()):
        raise ValueError("var holds a number that is not positive and finite")
    return tensor.expand(len(mean)).clone()


def normals(seed: int, number: int, mean: torch.Tensor) -> torch.Tensor:
    """ε for the draw of this number: a pure function of its address."""
    draw = generator(seed, Purpose.PERTURBATION, number).standard_normal(len(mean), dtype=np.float32)
    return torch.from_numpy(draw).to(mean.dtype)


def fitness_of(name: str, value: float) -> float:
    """A fitness as a float; infinities are allowed (a failed or an unbeatable individual), NaN raises ValueError."""
    if math.isnan(value := float(value)):
        raise ValueError(f"{name} is NaN; expected a number (-inf marks an individual that failed)")
    return value


def elite_weights(elites: int) -> torch.Tensor:
    """λᵢ ∝ log((n+1)/i) for the elites i = 1..n, best first, summing to one."""
    weights = np.log((elites + 1) / np.arange(1, elites + 1))
    return torch.from_numpy(weights / weights.sum())


def elites_of(individuals: torch.Tensor, fitness: np.ndarray, count: int) -> torch.Tensor:
    """The best individuals, best first; of equals the earlier one."""
    best = np.argsort(-fitness, kind="stable")[:count]
    return individuals[torch.from_numpy(best)]


def positive(name: str, value: float) -> float:
    """A number above zero, or ValueError."""
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} is {value}; expected a finite number above 0")
    return float(value)


def restore_tensors(state: Mapping[str, Any], *targets: tuple[str, torch.Tensor]) -> None:
    """Copy tensors of a state over a strategy's own. Another size raises ValueError."""
    for name, target in targets:
        source = torch.as_tensor(state[name])
        if source.shape != target.shape:
            raise ValueError(
                f"the state's {name} has shape {tuple(source.shape)}; this strategy's has {tuple(target.shape)}"
            )
        target.copy_(source)
