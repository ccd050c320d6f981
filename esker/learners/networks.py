"""MLPs for training: one flat vector of parameters, in the very order that workers run them in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F

from esker.noise import Row

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tanh": torch.tanh,
    "relu": F.relu,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "selu": F.selu,
    "silu": F.silu,
}


def initial(sizes: tuple[int, ...], rng: np.random.Generator) -> Row:
    """torch's own initialisation of linear layers: weights and biases uniform within ±1/√fan_in."""
    parts = []
    for fan_in, fan_out in pairwise(sizes):
        bound = 1 / np.sqrt(fan_in)
        parts += [rng.uniform(-bound, bound, fan_out * fan_in), rng.uniform(-bound, bound, fan_out)]
    return np.concatenate(parts).astype(np.float32)


class FlatMLP:
    """`count` MLPs of one shape, run side by side; every parameter is a view of `flat`, layer after layer.

    With one MLP, `flat` is laid out as the workers' rows are: weights (out, in), then biases, for each layer.
    """

    def __init__(self, sizes: tuple[int, ...], activation: str, count: int = 1, device: str | torch.device = "cpu") -> None:
        self.sizes = sizes
        self.count = count
        self.activation = ACTIVATIONS[activation]
        self.flat = torch.zeros(count * dimension(sizes), device=device)
        self.parameters: list[torch.nn.Parameter] = []
        self.layers: list[tuple[torch.Tensor, torch.Tensor]] = []
        at = 0
        for fan_in, fan_out in pairwise(sizes):
            weight = self._view(at, (count, fan_out, fan_in))
            bias = self._view(at + weight.numel(), (count, 1, fan_out))
            at += weight.numel() + bias.numel()
            self.layers.append((weight, bias))
        self.first = [(weight.detach()[0], bias.detach()[0, 0]) for weight, bias in self.layers]

    def _view(self, at: int, shape: tuple[int, ...]) -> torch.nn.Parameter:
        size = int(np.prod(shape))
        parameter = torch.nn.Parameter(self.flat[at : at + size].view(shape))
        self.parameters.append(parameter)
        return parameter

    def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
        """Outputs (count, batch, out) for inputs (batch, in), which all MLPs share, or (count, batch, in)."""
        x = inputs if inputs.ndim == 3 else inputs.expand(self.count, *inputs.shape)
        *hidden, (weight, bias) = self.layers
        for hidden_weight, hidden_bias in hidden:
            x = self.activation(torch.baddbmm(hidden_bias, x, hidden_weight.transpose(1, 2)))
        return torch.baddbmm(bias, x, weight.transpose(1, 2))

    def frozen_first(self, inputs: torch.Tensor) -> torch.Tensor:
        """Outputs (batch, out) of the first MLP; gradients reach the inputs, not the parameters."""
        *hidden, (weight, bias) = self.first
        x = inputs
        for hidden_weight, hidden_bias in hidden:
            x = self.activation(F.linear(x, hidden_weight, hidden_bias))
        return F.linear(x, weight, bias)


def dimension(sizes: tuple[int, ...]) -> int:
    """How many parameters one MLP has."""
    return sum(fan_in * fan_out + fan_out for fan_in, fan_out in pairwise(sizes))


def stack(rows: list[Row], sizes: tuple[int, ...]) -> Row:
    """The rows of several MLPs in the layout of a `FlatMLP` that runs them side by side."""
    parts, at = [], 0
    for fan_in, fan_out in pairwise(sizes):
        for size in (fan_in * fan_out, fan_out):
            parts += [row[at : at + size] for row in rows]
            at += size
    return np.concatenate(parts)
