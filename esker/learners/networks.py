"""MLPs for training: one flat vector of parameters, in the very order that workers run them in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F

from esker.noise.directions import Vector
from esker.policies.mlp import MLP
from esker.policies.network import split

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tanh": torch.tanh,
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "selu": F.selu,
    "silu": F.silu,
}


def initial(sizes: tuple[int, ...], rng: np.random.Generator) -> Vector:
    """torch's own initialisation of linear layers: weights and biases uniform within ±1/√fan_in."""
    parts = []
    for fan_in, fan_out in pairwise(sizes):
        bound = 1 / np.sqrt(fan_in)
        parts += [rng.uniform(-bound, bound, fan_out * fan_in), rng.uniform(-bound, bound, fan_out)]
    return np.concatenate(parts).astype(np.float32)


class FlatMLP:
    """An MLP whose parameters are views of one flat vector, laid out as the workers' rows are: weight, bias, weight, …"""

    def __init__(self, sizes: tuple[int, ...], activation: str, device: str | torch.device = "cpu") -> None:
        self.activation = ACTIVATIONS[activation]
        network = MLP(sizes)
        self.flat = torch.zeros(network.dimension, device=device)
        self.parameters = views(self.flat, network.shapes.values())

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        """Outputs (batch, out) for inputs (batch, in)."""
        return run(inputs, self.parameters, F.linear, self.activation)


class StackedMLP:
    """MLPs of one shape, run side by side as one batched product; every parameter is a view of `flat`.

    Weights are (count, in, out), so that their gradients come out in the same layout: fused optimizers rely on that.
    """

    def __init__(self, sizes: tuple[int, ...], activation: str, device: str | torch.device = "cpu", count: int = 2) -> None:
        self.count = count
        self.activation = ACTIVATIONS[activation]
        self.flat = torch.zeros(count * MLP(sizes).dimension, device=device)
        shapes = [shape for a, b in pairwise(sizes) for shape in ((count, a, b), (count, 1, b))]
        self.parameters = views(self.flat, shapes)
        self.first = [parameter.detach()[0] for parameter in self.parameters]

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        """Outputs (count, batch, out) for inputs (count, batch, in), or for (batch, in), which all share."""
        return run(inputs.expand(self.count, *inputs.shape[-2:]), self.parameters, _batched, self.activation)

    def frozen_first(self, inputs: torch.Tensor) -> torch.Tensor:
        """Outputs (batch, out) of the first MLP; gradients reach the inputs, not the parameters."""
        return run(inputs, self.first, _single, self.activation)


def run(
    inputs: torch.Tensor,
    parameters: Sequence[torch.Tensor],
    layer: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor],
    activation: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Layer after layer, with the activation between them."""
    x = layer(inputs, parameters[0], parameters[1])
    for weight, bias in zip(parameters[2::2], parameters[3::2], strict=True):
        x = layer(activation(x), weight, bias)
    return x


def _batched(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.baddbmm(bias, x, weight)


def _single(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.addmm(bias, x, weight)


def views(flat: torch.Tensor, shapes: Iterable[tuple[int, ...]]) -> list[torch.nn.Parameter]:
    """Parameters that share the memory of a flat vector."""
    return [torch.nn.Parameter(part) for part in split(flat, shapes)]


def stacked(rows: Sequence[Vector], sizes: tuple[int, ...]) -> Vector:
    """Rows in the layout of a `StackedMLP`."""
    parts = []
    for layer in zip(*(MLP(sizes).layers(row) for row in rows), strict=True):
        parts += [weight.T.reshape(-1) for weight, _ in layer] + [bias for _, bias in layer]
    return np.concatenate(parts)


def unstacked(flat: Vector, sizes: tuple[int, ...], count: int) -> Vector:
    """The rows (count, dimension) that a `StackedMLP` holds."""
    shapes = [shape for a, b in pairwise(sizes) for shape in ((count, a, b), (count, b))]
    parts = [part.swapaxes(1, -1).reshape(count, -1) for part in split(flat, shapes)]
    return np.concatenate(parts, axis=1)
