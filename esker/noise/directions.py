"""Perturbations by address: "perturb" and "weighted sum", nothing else.

A direction ε is named by `(seed, generation, direction number)`. Nobody stores or ships it, and no N×d matrix is ever
formed: perturbing needs one row, the weighted sum one accumulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Vector = NDArray[np.float32]
Weights = NDArray[np.float64]
NoiseKind = Literal["table", "counter", "low-rank"]
SMALL = 1 << 18  # numbers: directions of no more than this are summed as one matrix, quicker than one after the other


class Noise(Protocol):
    """Gaussian directions of dimension d, addressed by generation and number."""

    @property
    def dimension(self) -> int: ...

    def direction(self, generation: int, number: int) -> Vector:
        """ε as a read-only row."""
        ...

    def weighted_sum(self, generation: int, weights: Weights) -> Vector:
        """Σ weights[k]·εₖ over directions 0, 1, …, in O(d) memory."""
        ...

    def weighted_moments(self, generation: int, linear: Weights, square: Weights) -> tuple[Vector, Vector]:
        """Σ linear[k]·εₖ and Σ square[k]·εₖ², element-wise, in O(d) memory. Low-rank noise raises ValueError."""
        ...


def perturb(noise: Noise, center: Vector, scale: float | Vector, generation: int, number: int, out: Vector) -> None:
    """out ← center + scale·ε, with one scale or one for each parameter."""
    np.multiply(noise.direction(generation, number), np.asarray(scale, dtype=np.float32), out=out)
    out += center


def directions(noise: Noise, generation: int, numbers: NDArray[np.int64]) -> Vector:
    """Several directions as new rows, (n, d), with the bits of `direction`."""
    at_once = getattr(noise, "directions", None)
    if at_once is not None:
        return at_once(generation, numbers)
    return np.stack([noise.direction(generation, int(number)) for number in numbers])


def small_moments(rows: torch.Tensor, linear: Weights, square: Weights) -> tuple[Vector, Vector]:
    """The moments of a few short directions: two products, on one thread so that the bits are always the same."""
    import torch

    from esker.system.torch_threads import one_torch_thread

    one, two = torch.from_numpy(linear.astype(np.float32)), torch.from_numpy(square.astype(np.float32))
    with one_torch_thread():
        first, second = one @ rows, two @ rows.square()
    return first.numpy(), second.numpy()
