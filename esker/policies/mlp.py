"""Multi-layer perceptrons in NumPy: one batched product per layer, different parameters in every row.

NumPy's batched matmul gives a row the same bits whatever the batch, and for small networks it is faster than
torch.bmm (which does not). Workers that run an MLP therefore never import torch. Parameters are laid out as in the
equivalent torch.nn.Sequential: weight (out, in), bias, layer by layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Literal

import numpy as np

from esker.noise.directions import Vector
from esker.policies.network import Batch, Shapes, size, split
from esker.system.imports import import_callable

Activation = Literal["tanh", "relu", "leaky_relu", "elu", "selu", "silu"]
Initializer = Literal["xavier", "normalized-columns", "zero"]


def _elu(x: Batch, alpha: float = 1.0, scale: float = 1.0) -> Batch:
    return np.where(x > 0, x, np.float32(alpha) * np.expm1(np.minimum(x, 0))) * np.float32(scale)


ACTIVATIONS: dict[str, Callable[[Batch], Batch]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "leaky_relu": lambda x: np.maximum(x, np.float32(0.01) * x),
    "elu": _elu,
    "selu": lambda x: _elu(x, 1.6732632423543772, 1.0507009873554805),
    "silu": lambda x: x * (np.float32(0.5) + np.float32(0.5) * np.tanh(np.float32(0.5) * x)),
}


def activation_of(name: str) -> Callable[[Batch], Batch]:
    """The activation of a name, or of a path `module:function` of NumPy arrays. What does not import raises UsageError."""
    return partial(_as_float32, import_callable(name, "activation")) if ":" in name else ACTIVATIONS[name]


def _as_float32(activation: Callable[[Batch], Batch], x: Batch) -> Batch:
    return np.asarray(activation(x), dtype=np.float32)


@dataclass(frozen=True)
class MLP:
    """Fully connected layers with one activation between them; no hidden layer makes a linear policy."""

    sizes: tuple[int, ...]
    activation: Activation | str = "tanh"  # or module:function
    initializer: Initializer = "xavier"

    @property
    def inputs(self) -> int:
        return self.sizes[0]

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.sizes[0],)

    @property
    def outputs(self) -> int:
        return self.sizes[-1]

    @cached_property
    def dimension(self) -> int:
        """How many parameters it has."""
        return size(self.shapes.values())

    @property
    def shapes(self) -> Shapes:
        """Names and shapes of the parameters, as the equivalent torch.nn.Sequential has them."""
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, (fan_in, fan_out) in enumerate(pairwise(self.sizes)):
            shapes |= {f"{2 * layer}.weight": (fan_out, fan_in), f"{2 * layer}.bias": (fan_out,)}
        return shapes

    def layers(self, flat: Batch) -> list[tuple[Batch, Batch]]:
        """Weight (out, in) and bias of every layer, as views of flat parameters or of rows of them."""
        parts = split(flat, self.shapes.values())
        return list(zip(parts[0::2], parts[1::2], strict=True))

    def initial(self, rng: np.random.Generator) -> Vector:
        """Zero biases, and weights by the initializer: OpenAI's normalised rows have norm 1.0 hidden, 0.01 output."""
        parts: list[Vector] = []
        for layer, (fan_in, fan_out) in enumerate(pairwise(self.sizes), start=1):
            if self.initializer == "xavier":
                bound = np.sqrt(6.0 / (fan_in + fan_out))
                weight = rng.uniform(-bound, bound, (fan_out, fan_in))
            elif self.initializer == "zero":
                weight = np.zeros((fan_out, fan_in))
            else:
                weight = rng.standard_normal((fan_out, fan_in))
                norm = 0.01 if layer == len(self.sizes) - 1 else 1.0
                weight *= norm / np.linalg.norm(weight, axis=1, keepdims=True)
            parts += [weight.astype(np.float32).ravel(), np.zeros(fan_out, dtype=np.float32)]
        return np.concatenate(parts)

    def open(self, rows: int) -> MLPRows:
        """Rows of parameters to be filled and run."""
        return MLPRows(self, rows)


class MLPRows:
    """An MLP opened in a worker; see `Rows`."""

    def __init__(self, network: MLP, rows: int) -> None:
        self.network = network
        self.parameters: Batch = np.zeros((rows, network.dimension), dtype=np.float32)
        self._activation = activation_of(network.activation)
        self._views: dict[int, list[tuple[Batch, Batch]]] = {}

    def _layers(self, rows: int) -> list[tuple[Batch, Batch]]:
        """Weight and bias views of the first rows, made once for each number of rows."""
        if rows not in self._views:
            layers = self.network.layers(self.parameters[:rows])
            self._views[rows] = [(weight, bias[:, :, None]) for weight, bias in layers]
        return self._views[rows]

    def forward(self, inputs: Batch) -> Batch:
        """Outputs of the first n rows for n inputs."""
        *hidden, (weight, bias) = self._layers(len(inputs))
        x = inputs[:, :, None]
        for hidden_weight, hidden_bias in hidden:
            x = np.matmul(hidden_weight, x)
            x += hidden_bias
            x = self._activation(x)
        x = np.matmul(weight, x)
        x += bias
        return x[:, :, 0]

    def start(self, row: int) -> None:
        """An MLP has no state to reset."""

    def move(self, source: int, target: int) -> None:
        """Copy one row's parameters over another's."""
        self.parameters[target] = self.parameters[source]
