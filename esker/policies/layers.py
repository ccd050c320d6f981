"""Layers in NumPy, one member per row: dense layers and recurrent cells.

A layer is a description; opened in a worker it holds views of the rows' parameters and, if any, packed
weights, normalising constants and recurrent state. Every product is one BLAS call per row with a shape that no other
row can change, so a member's bits depend neither on its row nor on the other rows. Parameters are named and laid out as
in the torch layer of the same kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from esker.policies.mlp import activation_of
from esker.policies.network import Batch, Shapes

Views = dict[str, NDArray[np.float32]]  # a layer's parameters by name, a row of them for each row
EPSILON = np.float32(1e-5)


class LayerRows(Protocol):
    """A layer opened in a worker."""

    def forward(self, x: Batch) -> Batch:
        """Outputs of rows 0..n-1."""
        ...

    def start(self, row: int) -> None:
        """Use the parameters just written to a row, and reset its recurrent state."""
        ...

    def calibrate(self, row: int, x: Batch) -> Batch:
        """Pass a reference batch through a row's parameters; a normalising layer keeps the statistics it sees."""
        ...

    def move(self, source: int, target: int) -> None:
        """Copy what a row holds besides its parameters."""
        ...


class Layer(Protocol):
    """A description of a layer."""

    @property
    def shapes(self) -> Shapes: ...

    @property
    def normalized(self) -> bool: ...

    def open(self, rows: int, views: Views) -> LayerRows: ...


@dataclass(frozen=True)
class Dense:
    """Fully connected, then virtual batch normalisation if enabled, then an activation if it has one."""

    name: str
    inputs: int
    outputs: int
    activation: str | None = None
    normalized: bool = False

    @property
    def shapes(self) -> Shapes:
        shapes: Shapes = {f"{self.name}.weight": (self.outputs, self.inputs), f"{self.name}.bias": (self.outputs,)}
        return shapes | (norm_shapes(self.name, self.outputs) if self.normalized else {})

    def open(self, rows: int, views: Views) -> DenseRows:
        return DenseRows(self, rows, views)


class DenseRows:
    """A dense layer opened in a worker."""

    def __init__(self, layer: Dense, rows: int, views: Views) -> None:
        self.weight = views[f"{layer.name}.weight"]
        self.affine = Affine(layer.name, layer.normalized, rows, layer.outputs, views)
        self.activation = activation_of(layer.activation) if layer.activation else None

    def forward(self, x: Batch) -> Batch:
        y = np.matmul(self.weight[: len(x)], x.reshape(len(x), -1, 1))[:, :, 0]
        return self._finish(self.affine(y, slice(len(x))))

    def start(self, row: int) -> None:
        self.affine.start(row)

    def calibrate(self, row: int, x: Batch) -> Batch:
        y = x.reshape(len(x), -1) @ self.weight[row].T
        self.affine.calibrate(row, y)
        return self._finish(self.affine(y, row))

    def move(self, source: int, target: int) -> None:
        self.affine.move(source, target)

    def _finish(self, y: Batch) -> Batch:
        return y if self.activation is None else self.activation(y)


class Affine:
    """y·scale + shift per channel: the bias alone, or virtual batch normalisation folded into two numbers.

    Normalised: γ(y + b - mean)/√(var + ε) + β with mean and variance of the reference batch under the row's own
    parameters (Salimans et al. 2017), constants for as long as the row keeps them.
    """

    def __init__(self, name: str, normalized: bool, rows: int, channels: int, views: Views) -> None:
        self.bias = views[f"{name}.bias"]
        self.normalized = normalized
        if normalized:
            self.gamma, self.beta = views[f"{name}_norm.weight"], views[f"{name}_norm.bias"]
            self.scale = np.ones((rows, channels), dtype=np.float32)
        self.shift = np.zeros((rows, channels), dtype=np.float32)

    def __call__(self, y: Batch, rows: slice | int) -> Batch:
        """Apply in place to the outputs of rows 0..n-1 (channels last), or of one row."""
        spread = (slice(None),) + (None,) * (y.ndim - 2) if isinstance(rows, slice) else ()
        if self.normalized:
            y *= self.scale[rows][spread]
        y += self.shift[rows][spread]
        return y

    def start(self, row: int) -> None:
        """The bias, until statistics are known."""
        self.shift[row] = self.bias[row]
        if self.normalized:
            self.scale[row] = 1

    def calibrate(self, row: int, y: Batch) -> None:
        """Take the statistics of a reference batch's outputs, (samples, channels)."""
        if not self.normalized:
            return
        mean = y.mean(axis=0)
        deviation = np.sqrt(np.square(y - mean).mean(axis=0) + EPSILON)
        self.scale[row] = self.gamma[row] / deviation
        self.shift[row] = self.beta[row] - mean * self.scale[row]  # the bias cancels: it is in the mean too

    def move(self, source: int, target: int) -> None:
        self.shift[target] = self.shift[source]
        if self.normalized:
            self.scale[target] = self.scale[source]


def norm_shapes(name: str, channels: int) -> Shapes:
    """Scale and shift of a normalising layer."""
    return {f"{name}_norm.weight": (channels,), f"{name}_norm.bias": (channels,)}


@dataclass(frozen=True)
class Cell:
    """A recurrent cell, "lstm" or "gru", with the parameters of torch.nn.LSTMCell or torch.nn.GRUCell."""

    name: str
    kind: str
    inputs: int
    size: int
    normalized: bool = False

    @property
    def shapes(self) -> Shapes:
        gates = (4 if self.kind == "lstm" else 3) * self.size
        return {
            f"{self.name}.weight_ih": (gates, self.inputs),
            f"{self.name}.weight_hh": (gates, self.size),
            f"{self.name}.bias_ih": (gates,),
            f"{self.name}.bias_hh": (gates,),
        }

    def open(self, rows: int, views: Views) -> CellRows:
        return (LSTMRows if self.kind == "lstm" else GRURows)(self, rows, views)


class CellRows:
    """What both cells share: a hidden state per row, zero when an episode starts."""

    def __init__(self, layer: Cell, rows: int, views: Views) -> None:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        self.from_input, self.from_hidden, self.bias_input, self.bias_hidden = (views[f"{layer.name}.{n}"] for n in names)
        self.size = layer.size
        self.hidden = np.zeros((rows, layer.size), dtype=np.float32)

    def forward(self, x: Batch) -> Batch:
        raise NotImplementedError

    def start(self, row: int) -> None:
        self.hidden[row] = 0

    def calibrate(self, row: int, x: Batch) -> Batch:
        raise NotImplementedError("no normalising layer follows a recurrent cell")

    def move(self, source: int, target: int) -> None:
        self.hidden[target] = self.hidden[source]

    def _gates(self, x: Batch) -> tuple[Batch, Batch]:
        """What the input and what the hidden state contribute to the gates."""
        n = len(x)
        given = np.matmul(self.from_input[:n], x.reshape(n, -1, 1))[:, :, 0] + self.bias_input[:n]
        kept = np.matmul(self.from_hidden[:n], self.hidden[:n, :, None])[:, :, 0] + self.bias_hidden[:n]
        return given, kept


class LSTMRows(CellRows):
    """i, f, o = σ(…), g = tanh(…); c ← f·c + i·g; h ← o·tanh(c)."""

    def __init__(self, layer: Cell, rows: int, views: Views) -> None:
        super().__init__(layer, rows, views)
        self.cell = np.zeros_like(self.hidden)

    def forward(self, x: Batch) -> Batch:
        given, kept = self._gates(x)
        given += kept
        size, n = self.size, len(x)
        input_forget = sigmoid(given[:, : 2 * size])
        cell = input_forget[:, size:] * self.cell[:n]
        cell += input_forget[:, :size] * np.tanh(given[:, 2 * size : 3 * size])
        self.cell[:n] = cell
        self.hidden[:n] = sigmoid(given[:, 3 * size :]) * np.tanh(cell)
        return self.hidden[:n]

    def start(self, row: int) -> None:
        super().start(row)
        self.cell[row] = 0

    def move(self, source: int, target: int) -> None:
        super().move(source, target)
        self.cell[target] = self.cell[source]


class GRURows(CellRows):
    """r, z = σ(…); n = tanh(W x + b + r·(U h + c)); h ← (1 - z)·n + z·h."""

    def forward(self, x: Batch) -> Batch:
        given, kept = self._gates(x)
        size, n = self.size, len(x)
        gates = sigmoid(given[:, : 2 * size] + kept[:, : 2 * size])
        reset, update = gates[:, :size], gates[:, size:]
        new = np.tanh(given[:, 2 * size :] + reset * kept[:, 2 * size :])
        self.hidden[:n] = new + update * (self.hidden[:n] - new)
        return self.hidden[:n]


def sigmoid(x: Batch) -> Batch:
    """The logistic function by way of tanh, which cannot overflow."""
    y = np.tanh(x * np.float32(0.5))
    y += np.float32(1)
    y *= np.float32(0.5)
    return y
