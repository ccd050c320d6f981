"""What strategies are given: centres, populations, noise, fitness. Wrong values raise ValueError."""

from __future__ import annotations

from math import floor, isfinite, log
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from esker.noise.choice import noise_from, open_table
from esker.noise.directions import Noise, Vector
from esker.noise.shaping import find_shaping
from esker.noise.table import DEFAULT_TABLE_SIZE

NoiseArgument = Noise | Literal["table", "counter"]


def start_of(center: ArrayLike | torch.Tensor) -> torch.Tensor:
    """A strategy's own copy of its first centre."""
    start = torch.as_tensor(center, dtype=torch.float32, device="cpu").detach().clone().contiguous()
    if start.ndim != 1 or len(start) == 0:
        raise ValueError(f"center has shape {tuple(start.shape)}; expected a flat vector of at least one parameter")
    if not torch.isfinite(start).all():
        raise ValueError("center holds NaN or infinity; expected finite parameters")
    return start


def noise_of(noise: NoiseArgument | str, seed: int, dimension: int) -> Noise:
    """The noise of a name, or the noise given."""
    if noise in ("counter", "table"):
        return noise_from(open_table(noise, seed, max(DEFAULT_TABLE_SIZE, 2 * dimension), dimension), seed, dimension)
    if isinstance(noise, str):
        raise ValueError(f"noise is {noise!r}; expected 'table', 'counter' or a noise object")
    return noise


def scales_of(sigma: float | ArrayLike | torch.Tensor, dimension: int) -> Vector:
    """A standard deviation for each parameter, from one or from all of them."""
    scales = np.asarray(sigma, dtype=np.float32)
    if scales.shape not in ((), (dimension,)):
        raise ValueError(f"sigma has shape {scales.shape}; expected one number, or one for each of {dimension:,} parameters")
    if not (np.isfinite(scales) & (scales > 0)).all():
        raise ValueError(f"sigma is {sigma!r}; expected a number above 0")
    return np.array(np.broadcast_to(scales, (dimension,)))


def default_population(dimension: int) -> int:
    """4 + ⌊3 ln d⌋, with which CMA-ES and the natural evolution strategies are published."""
    return 4 + floor(3 * log(dimension))


def check_population(population: int, antithetic: bool) -> None:
    """Refuse fewer than two members and half pairs."""
    if population < 2 or (antithetic and population % 2):
        raise ValueError(f"population is {population}; expected an even number of at least 2 (any with antithetic=False)")


def check_positive(**values: float) -> None:
    """Refuse what is not a finite number above zero."""
    for name, value in values.items():
        if not (value > 0 and isfinite(value)):
            raise ValueError(f"{name} is {value}; expected a number above 0")


def check_rate(lr: float) -> None:
    """Refuse a state's learning rate that is no number; it may have decayed to 0."""
    if not (lr >= 0 and isfinite(lr)):
        raise ValueError(f"lr is {lr}; expected a number of at least 0")


def check_shaping(shaping: str) -> None:
    """Refuse a shaping that does not exist (UsageError, which is a ValueError)."""
    find_shaping(shaping)


def check_squares(noise: Noise) -> None:
    """Refuse noise that has no squares (low-rank), before anything is evaluated."""
    noise.weighted_moments(0, np.zeros(1), np.zeros(1))


def members_of(members: slice | None, population: int) -> range:
    """The members that a slice names."""
    if not isinstance(members, slice | None):
        raise TypeError(f"ask({members!r}): expected a slice of members, as ask(slice(0, 8))")
    return range(population)[members or slice(None)]


def fitness_of(fitness: ArrayLike | torch.Tensor, population: int, antithetic: bool) -> NDArray[np.float64]:
    """The fitness of at least a population, as float64."""
    numbers = fitness.detach().cpu().numpy() if isinstance(fitness, torch.Tensor) else fitness
    values = np.asarray(numbers, dtype=np.float64)
    if values.ndim != 1 or len(values) < population or (antithetic and len(values) % 2):
        raise ValueError(f"fitness has shape {values.shape}; expected one number for each of {population} members")
    return values


def check_same_size(state: torch.Tensor, center: torch.Tensor) -> None:
    """Refuse a state of another centre."""
    if state.shape != center.shape:
        raise ValueError(f"the state has {state.numel():,} parameters; this strategy has {center.numel():,}")
    if not torch.isfinite(state).all():
        raise ValueError("the state's centre holds NaN or infinity; expected finite numbers")
