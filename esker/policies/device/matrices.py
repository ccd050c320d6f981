"""The matrices of all rows: each row's own, or one that a run's rows share and a thin product for each row's noise."""

from __future__ import annotations

from math import sqrt
from typing import Protocol

import torch

from esker.noise.device import DevicePopulation, Numbers
from esker.noise.directions import Noise
from esker.noise.lowrank import FactorLayout, LowRankNoise
from esker.policies.device.affine import affine
from esker.policies.device.parameters import RowParameters
from esker.policies.network import Shapes


class Matrix(Protocol):
    """One matrix a row, out × in."""

    def vectors(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """(rows, in) to (rows, out)."""
        ...

    def columns(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, in, n) to (rows, out, n): each row's matrix times its n columns."""
        ...

    def one(self, row: torch.Tensor) -> torch.Tensor:
        """The matrix of one row, given as an index of one number."""
        ...


class MatrixRows(Protocol):
    """The parameters of all rows, for layers that multiply."""

    def matrix(self, name: str) -> Matrix: ...
    def vector(self, name: str) -> torch.Tensor: ...
    def begin(self, block: int, population: DevicePopulation) -> None: ...
    def load(self, population: DevicePopulation, rows: torch.Tensor, members: Numbers) -> None: ...


def open_matrices(shapes: Shapes, noise: Noise, rows: int, device: torch.device, blocks: int) -> MatrixRows:
    """Parameters for a noise: low-rank noise stays in its factors."""
    if isinstance(noise, LowRankNoise):
        return SharedRows(shapes, noise, rows, device, blocks)
    return OwnRows(shapes, rows, device)


class OwnRows(RowParameters):
    """Every row has all its parameters."""

    def matrix(self, name: str) -> OwnMatrix:
        """A matrix by name; axes beyond the first are one."""
        return OwnMatrix(self.tensors[name].flatten(2))

    def vector(self, name: str) -> torch.Tensor:
        return self.tensors[name]

    def begin(self, block: int, population: DevicePopulation) -> None:
        """Rows share nothing."""


class OwnMatrix:
    """Each row's own matrix."""

    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight

    def vectors(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return affine(self.weight, bias, x)

    def columns(self, x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(self.weight, x)

    def one(self, row: torch.Tensor) -> torch.Tensor:
        return self.weight.index_select(0, row)[0]


class SharedRows:
    """Rows hold factors and vectors; matrices of the centre are shared by the rows of a block."""

    def __init__(self, shapes: Shapes, noise: LowRankNoise, rows: int, device: torch.device, blocks: int) -> None:
        self._layouts = dict(zip(shapes, noise.layouts, strict=True))
        self._matrices = {
            name: SharedMatrix(layout, noise.rank, rows, device, blocks)
            for name, layout in self._layouts.items()
            if layout.shape is not None
        }
        self._vectors = {
            name: torch.zeros(rows, layout.at.stop - layout.at.start, device=device)
            for name, layout in self._layouts.items()
            if layout.shape is None
        }

    def matrix(self, name: str) -> SharedMatrix:
        return self._matrices[name]

    def vector(self, name: str) -> torch.Tensor:
        return self._vectors[name]

    def begin(self, block: int, population: DevicePopulation) -> None:
        """Take the centre's matrices."""
        for matrix in self._matrices.values():
            matrix.weight[block] = population.center[matrix.layout.at].view(matrix.weight.shape[1:])

    def load(self, population: DevicePopulation, rows: torch.Tensor, members: Numbers) -> None:
        """Write members into rows."""
        factors, scales = population.factors(members)
        for matrix in self._matrices.values():
            matrix.load(rows, factors[:, matrix.layout.factors], scales)
        for name, vector in self._vectors.items():
            at = self._layouts[name]
            vector[rows] = population.center[at.at] + scales[:, None] * factors[:, at.factors]


class SharedMatrix:
    """W + (σ/√r) A Bᵀ: W of a block of rows, A and B of each row; A is scaled when a row is loaded."""

    def __init__(self, layout: FactorLayout, rank: int, rows: int, device: torch.device, blocks: int) -> None:
        assert layout.shape is not None
        fan_out, fan_in = layout.shape
        self.layout, self.rank, self.blocks, self.each = layout, rank, blocks, rows // blocks
        self.weight = torch.zeros(blocks, fan_out, fan_in, device=device)
        self.left = torch.zeros(rows, fan_out, rank, device=device)
        self.right = torch.zeros(rows, rank, fan_in, device=device)

    def load(self, rows: torch.Tensor, factors: torch.Tensor, scales: torch.Tensor) -> None:
        """Take the factors of members: A, then B."""
        size = self.left.shape[1] * self.rank
        self.left[rows] = (factors[:, :size] * (scales[:, None] / sqrt(self.rank))).view(-1, *self.left.shape[1:])
        self.right[rows] = factors[:, size:].reshape(len(factors), -1, self.rank).transpose(1, 2)

    def vectors(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        blocks = bias.view(self.blocks, self.each, -1), x.view(self.blocks, self.each, -1)
        base = torch.baddbmm(*blocks, self.weight.transpose(1, 2)).flatten(0, 1)
        return base + torch.bmm(self.left, torch.bmm(self.right, x[:, :, None]))[:, :, 0]

    def columns(self, x: torch.Tensor) -> torch.Tensor:
        base = torch.matmul(self.weight[:, None], x.view(self.blocks, self.each, *x.shape[1:])).flatten(0, 1)
        return torch.baddbmm(base, self.left, torch.bmm(self.right, x))

    def one(self, row: torch.Tensor) -> torch.Tensor:
        thin = self.left.index_select(0, row)[0] @ self.right.index_select(0, row)[0]
        block = torch.div(row, self.each, rounding_mode="floor")
        return self.weight.index_select(0, block)[0] + thin
