"""Multi-layer perceptrons on a device: every row has its own matrices, multiplied in one batched product per layer."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from esker.errors import UsageError
from esker.noise.device import DevicePopulation, Numbers
from esker.noise.directions import Noise
from esker.policies.device.affine import affine
from esker.policies.device.parameters import RowParameters
from esker.policies.mlp import MLP

Function = Callable[[torch.Tensor], torch.Tensor]
ACTIVATIONS: dict[str, Function] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "selu": functional.selu,
    "silu": functional.silu,
}


def activation_of(name: str) -> Function:
    """The activation of a name. A custom one is a NumPy function, and raises UsageError."""
    if name not in ACTIVATIONS:
        raise UsageError(f"activation {name} is a function of NumPy arrays; on a device use {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


class DeviceMLP:
    """An MLP opened on a device; see `DeviceRows`."""

    def __init__(self, network: MLP, noise: Noise, rows: int, device: torch.device, blocks: int = 1) -> None:
        self.parameters = RowParameters(network.shapes, rows, device)
        tensors = list(self.parameters.tensors.values())
        self.layers = list(zip(tensors[0::2], tensors[1::2], strict=True))
        self.activation = activation_of(network.activation)

    def begin(self, block: int, population: DevicePopulation) -> None:
        """Rows share nothing."""

    def load(self, population: DevicePopulation, rows: torch.Tensor, members: Numbers) -> None:
        self.parameters.load(population, rows, members)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        x = inputs
        for number, (weight, bias) in enumerate(self.layers, start=1):
            x = affine(weight, bias, x)
            if number < len(self.layers):
                x = self.activation(x)
        return x
