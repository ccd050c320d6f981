"""An MLP whose members differ by low-rank perturbations: the population shares one product per layer.

A member's layer is x Wᵀ + (σ/√r)(x B) Aᵀ: all rows go through the centre's W in one product, and each row adds a
thin one. No member's matrix is ever formed. The shared product always has BLOCK rows, padded, because a product's bits
are only the same for the same shape; within that shape a row's place does not matter, which is tested when opened.
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import numpy as np

from esker.noise.directions import Vector
from esker.noise.lowrank import LowRankNoise
from esker.policies.mlp import MLP, activation_of
from esker.policies.network import Batch

BLOCK = 32


class SharedMLPRows:
    """Rows of factors instead of parameters: `load` names a row's member, `set_center` what all rows share."""

    def __init__(self, network: MLP, noise: LowRankNoise, rows: int) -> None:
        self.network = network
        self.noise = noise
        self.factors: Batch = np.zeros((rows, noise.factor_count), dtype=np.float32)
        self.scales: Batch = np.zeros((rows, 1), dtype=np.float32)
        self._activation = activation_of(network.activation)
        self._padded = [np.zeros((-(-rows // BLOCK) * BLOCK, fan_in), dtype=np.float32) for fan_in in network.sizes[:-1]]
        self._shared = _product if _place_does_not_matter(network) else _row_by_row

    def set_center(self, center: Vector) -> None:
        """What all rows share from now on."""
        layers = self.network.layers(center)
        self._weights = [(np.ascontiguousarray(weight.T), bias.copy()) for weight, bias in layers]

    def load(self, row: int, generation: int, direction: int, scale: float) -> None:
        """Let a row be centre + scale·ε of a direction; scale 0 is the centre itself."""
        self.scales[row] = scale
        self.factors[row] = self.noise.factors(generation, direction) if scale else 0.0

    def forward(self, inputs: Batch) -> Batch:
        """Outputs of the first n rows for n inputs."""
        n, x = len(inputs), inputs
        scales, root = self.scales[:n], np.float32(1 / sqrt(self.noise.rank))
        layers = zip(self._weights, self._padded, self.noise.layouts[0::2], self.noise.layouts[1::2], strict=True)
        for number, ((weight, bias), padded, matrix, vector) in enumerate(layers, start=1):
            assert matrix.shape is not None
            a, b = self.noise.split(self.factors[:n, matrix.factors], matrix.shape)
            padded[:n] = x
            thin = np.matmul(a, np.matmul(b.transpose(0, 2, 1), x[:, :, None]))[:, :, 0]
            x = self._shared(padded, weight)[:n] + (scales * root) * thin
            x += bias + scales * self.factors[:n, vector.factors]
            if number < len(self._weights):
                x = self._activation(x)
        return x

    def start(self, row: int) -> None:
        """An MLP has no state to reset."""

    def move(self, source: int, target: int) -> None:
        """Copy one row's member over another's."""
        self.factors[target] = self.factors[source]
        self.scales[target] = self.scales[source]


def _product(padded: Batch, weight: Batch) -> Batch:
    return np.concatenate([np.matmul(padded[at : at + BLOCK], weight) for at in range(0, len(padded), BLOCK)])


def _row_by_row(padded: Batch, weight: Batch) -> Batch:
    """Slower, and the same bits for a row on any machine whose product of BLOCK rows is not."""
    return np.matmul(padded[:, None, :], weight)[:, 0]


def _place_does_not_matter(network: MLP) -> bool:
    """Whether this machine's product gives a row the same bits at any place of a block."""
    rng = np.random.default_rng(0)
    for fan_in, fan_out in pairwise(network.sizes):
        x = rng.standard_normal((BLOCK, fan_in)).astype(np.float32)
        weight = rng.standard_normal((fan_in, fan_out)).astype(np.float32)
        order = rng.permutation(BLOCK)
        expected = np.matmul(x, weight)
        if not np.array_equal(np.matmul(np.ascontiguousarray(x[order]), weight), expected[order]):
            return False
        if not np.array_equal(np.matmul(np.ascontiguousarray(np.roll(x, 1, axis=0)), weight), np.roll(expected, 1, axis=0)):
            return False
    return True
