"""Low-rank perturbations (EGGROLL, Sarkar et al. 2025): E = A Bᵀ/√r for every matrix, ordinary noise for vectors.

A direction is named by its factors, r·(m+n) normals for an m×n matrix, drawn by counter. The update of N directions is
one product of inner size N·r per matrix; neither it nor a direction's address ever needs an N×d matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from esker.noise.address import Purpose, generator
from esker.noise.directions import Vector, Weights

CHUNK = 256  # directions whose factors are held at once in an update


@dataclass(frozen=True)
class FactorLayout:
    """The place of one parameter in the flat vector, and of its factors among a direction's factors."""

    shape: tuple[int, int] | None  # rows and columns; None for a vector
    at: slice
    factors: slice


@dataclass(frozen=True)
class LowRankNoise:
    """Directions of rank r, layer by layer; tensors of more axes are matrices of their first axis by the rest."""

    seed: int
    shapes: tuple[tuple[int, ...], ...]
    rank: int = 1

    @cached_property
    def layouts(self) -> list[FactorLayout]:
        """The parameters in the order of the flat vector."""
        layouts, at, factor = [], 0, 0
        for shape in self.shapes:
            matrix = (shape[0], prod(shape[1:])) if len(shape) > 1 else None
            factors = self.rank * sum(matrix) if matrix else prod(shape)
            layouts.append(FactorLayout(matrix, slice(at, at + prod(shape)), slice(factor, factor + factors)))
            at, factor = at + prod(shape), factor + factors
        return layouts

    @cached_property
    def dimension(self) -> int:
        """How many parameters a direction has."""
        return self.layouts[-1].at.stop

    @cached_property
    def factor_count(self) -> int:
        """How many normals name a direction."""
        return self.layouts[-1].factors.stop

    def factors(self, generation: int, number: int) -> Vector:
        """The normals that name a direction: A, then B, of each matrix; a vector's own noise."""
        rng = generator(self.seed, Purpose.PERTURBATION, generation, number)
        return rng.standard_normal(self.factor_count, dtype=np.float32)

    def direction(self, generation: int, number: int) -> Vector:
        """ε as a row."""
        factors, out = self.factors(generation, number), np.empty(self.dimension, dtype=np.float32)
        for layout in self.layouts:
            part = factors[layout.factors]
            if layout.shape is None:
                out[layout.at] = part
                continue
            a, b = self.split(part, layout.shape)
            matrix = sum(np.multiply.outer(a[:, r], b[:, r]) for r in range(self.rank))
            out[layout.at] = np.ravel(matrix) / np.float32(sqrt(self.rank))
        return out

    def weighted_sum(self, generation: int, weights: Weights) -> Vector:
        """Σ weights[k]·εₖ, in chunks of directions that are added in their order."""
        total = np.zeros(self.dimension, dtype=np.float32)
        numbers = np.flatnonzero(weights)
        for start in range(0, len(numbers), CHUNK):
            chosen = numbers[start : start + CHUNK]
            factors = np.stack([self.factors(generation, int(k)) for k in chosen])
            total += self._combine(factors, weights[chosen].astype(np.float32))
        return total

    def weighted_moments(self, generation: int, linear: Weights, square: Weights) -> tuple[Vector, Vector]:
        """Refused with ValueError: the entries of a low-rank direction cannot scale single parameters."""
        raise ValueError("low-rank noise has no standard deviation per parameter; use table or counter noise, or OpenAI-ES")

    def split(self, part: NDArray[np.float32], shape: tuple[int, int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """A (…, rows, r) and B (…, columns, r) of one matrix's factors."""
        rows, columns = shape
        a, b = part[..., : rows * self.rank], part[..., rows * self.rank :]
        return a.reshape(*part.shape[:-1], rows, self.rank), b.reshape(*part.shape[:-1], columns, self.rank)

    def _combine(self, factors: NDArray[np.float32], weights: Vector) -> Vector:
        """Σ weights[k]·Aₖ Bₖᵀ/√r over some directions: one product per matrix, of inner size (directions × r)."""
        out = np.empty(self.dimension, dtype=np.float32)
        for layout in self.layouts:
            part = factors[:, layout.factors]
            if layout.shape is None:
                out[layout.at] = (part * weights[:, None]).sum(axis=0)
                continue
            a, b = self.split(part, layout.shape)
            a = a * (weights[:, None, None] / np.float32(sqrt(self.rank)))
            rows, columns = layout.shape
            left, right = a.transpose(1, 0, 2).reshape(rows, -1), b.transpose(0, 2, 1).reshape(-1, columns)
            out[layout.at] = _product(left, right).ravel()
        return out


def _product(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """left @ right on one thread, because a product's bits may depend on how many share it."""
    import torch

    from esker.system.torch_threads import one_torch_thread

    with one_torch_thread():
        return torch.from_numpy(np.ascontiguousarray(left)).matmul(torch.from_numpy(np.ascontiguousarray(right))).numpy()
