"""Perceptrons under low-rank noise on a device: one product that a run's rows share and a thin one for each row's noise.

W x + (σ/√r) A (Bᵀ x): no row ever has its own matrices.
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import torch

from esker.noise.device import DevicePopulation, Numbers
from esker.noise.lowrank import LowRankNoise
from esker.policies.device.mlp import activation_of
from esker.policies.mlp import MLP


class DeviceSharedMLP:
    """An MLP whose rows hold factors; A and the bias are scaled and added up when a row is loaded."""

    def __init__(self, network: MLP, noise: LowRankNoise, rows: int, device: torch.device, blocks: int = 1) -> None:
        self.noise, self.blocks = noise, blocks
        self.activation = activation_of(network.activation)
        sizes, rank = list(pairwise(network.sizes)), noise.rank
        self.weights = [torch.zeros(blocks, fan_in, fan_out, device=device) for fan_in, fan_out in sizes]
        self.left = [torch.zeros(rows, fan_out, rank, device=device) for _, fan_out in sizes]
        self.right = [torch.zeros(rows, rank, fan_in, device=device) for fan_in, _ in sizes]
        self.bias = [torch.zeros(rows, fan_out, device=device) for _, fan_out in sizes]

    def begin(self, block: int, population: DevicePopulation) -> None:
        for weights, matrix in zip(self.weights, self.noise.layouts[0::2], strict=True):
            weight = weights[block]
            weight.copy_(population.center[matrix.at].view(weight.shape[1], weight.shape[0]).T)

    def load(self, population: DevicePopulation, rows: torch.Tensor, members: Numbers) -> None:
        factors, scales = population.factors(members)
        layouts, scale = self.noise.layouts, scales[:, None]
        for number, (matrix, vector) in enumerate(zip(layouts[0::2], layouts[1::2], strict=True)):
            assert matrix.shape is not None
            fan_out, rank = matrix.shape[0], self.noise.rank
            part = factors[:, matrix.factors]
            a, b = part[:, : fan_out * rank], part[:, fan_out * rank :]
            self.left[number][rows] = (a * (scale / sqrt(rank))).view(-1, fan_out, rank)
            self.right[number][rows] = b.reshape(len(b), -1, rank).transpose(1, 2)
            self.bias[number][rows] = population.center[vector.at] + scale * factors[:, vector.factors]

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        x = inputs
        layers = zip(self.weights, self.left, self.right, self.bias, strict=True)
        for number, (weight, left, right, bias) in enumerate(layers, start=1):
            thin = torch.bmm(right, x[:, :, None])
            x = torch.baddbmm(self._blocks(bias), self._blocks(x), weight).flatten(0, 1)
            x = (
                torch.addcmul(x, left[:, :, 0], thin[:, :, 0])
                if self.noise.rank == 1
                else x + torch.bmm(left, thin)[:, :, 0]
            )
            if number < len(self.weights):
                x = self.activation(x)
        return x

    def _blocks(self, rows: torch.Tensor) -> torch.Tensor:
        return rows.view(self.blocks, -1, rows.shape[1])
