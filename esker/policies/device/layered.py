"""Networks of layers on a device: convolutions, dense layers and cells, one batched product for each of their matrices."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from esker.noise.device import DevicePopulation, Numbers
from esker.noise.directions import Noise
from esker.policies.convolution import Conv, Flatten, Standardize
from esker.policies.device.convolution import (
    DeviceConv,
    DeviceFlatten,
    DeviceStandardize,
    VirtualNorm,
    as_images,
    as_numbers,
)
from esker.policies.device.matrices import MatrixRows, open_matrices
from esker.policies.device.mlp import activation_of
from esker.policies.layered import Layered
from esker.policies.layers import Cell, Dense


class DeviceLayer(Protocol):
    """One layer of all rows."""

    def start(self, rows: torch.Tensor) -> None:
        """Forget the state of some rows."""
        ...

    def forward(self, x: torch.Tensor) -> torch.Tensor: ...

    def calibrate(self, row: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Pass a reference batch through one row's parameters; a normalising layer keeps the statistics it sees."""
        ...


class DeviceDense:
    """A fully connected layer."""

    def __init__(self, layer: Dense, parameters: MatrixRows) -> None:
        self.weight, self.bias = parameters.matrix(f"{layer.name}.weight"), parameters.vector(f"{layer.name}.bias")
        self.norm = VirtualNorm(layer.name, parameters) if layer.normalized else None
        self.added = torch.zeros_like(self.bias) if layer.normalized else self.bias  # the mean has the bias, too
        self.activation = activation_of(layer.activation) if layer.activation else None

    def start(self, rows: torch.Tensor) -> None:
        """Nothing is remembered."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.weight.vectors(x, self.added)
        if self.norm is not None:
            y = self.norm(y)
        return y if self.activation is None else self.activation(y)

    def calibrate(self, row: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        y = x @ self.weight.one(row).T
        y = self.norm.calibrate(row, y) if self.norm is not None else y + self.bias.index_select(0, row)
        return y if self.activation is None else self.activation(y)


class DeviceCell:
    """A GRU cell, or with `cell` an LSTM cell; the state is changed in place, where a captured graph finds it."""

    def __init__(self, layer: Cell, parameters: MatrixRows) -> None:
        self.from_input, self.from_hidden = (parameters.matrix(f"{layer.name}.weight_{part}") for part in ("ih", "hh"))
        self.bias_input, self.bias_hidden = (parameters.vector(f"{layer.name}.bias_{part}") for part in ("ih", "hh"))
        self.hidden = torch.zeros(len(self.bias_input), layer.size, device=self.bias_input.device)
        self.cell = torch.zeros_like(self.hidden) if layer.kind == "lstm" else None

    def start(self, rows: torch.Tensor) -> None:
        self.hidden[rows] = 0
        if self.cell is not None:
            self.cell[rows] = 0

    def calibrate(self, row: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("no normalising layer follows a recurrent cell")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = self.from_input.vectors(x, self.bias_input)
        kept = self.from_hidden.vectors(self.hidden, self.bias_hidden)
        if self.cell is not None:
            into, forget, new, out = torch.chunk(given + kept, 4, dim=1)
            self.cell.copy_(torch.sigmoid(forget) * self.cell + torch.sigmoid(into) * torch.tanh(new))
            return self.hidden.copy_(torch.sigmoid(out) * torch.tanh(self.cell))
        (reset, update, new), (kept_reset, kept_update, kept_new) = torch.chunk(given, 3, 1), torch.chunk(kept, 3, 1)
        new = torch.tanh(new + torch.sigmoid(reset + kept_reset) * kept_new)
        return self.hidden.copy_(new + torch.sigmoid(update + kept_update) * (self.hidden - new))


KINDS: dict[type, Any] = {
    Conv: DeviceConv,
    Standardize: DeviceStandardize,
    Flatten: DeviceFlatten,
    Dense: DeviceDense,
    Cell: DeviceCell,
}


class DeviceLayered:
    """A stack of layers opened on a device; see `DeviceRows`.

    Rows are calibrated one by one, in products whose shape is always the same: a member's bits do not depend on how many
    are loaded with it.
    """

    def __init__(self, network: Layered, noise: Noise, rows: int, device: torch.device, blocks: int = 1) -> None:
        if network.normalized and network.reference is None:
            raise ValueError(f"{network.name} normalises by a reference batch and was given none")
        self.images, self.shape = network.images, network.input_shape
        self.parameters = open_matrices(network.shapes, noise, rows, device, blocks)
        self.layers: list[DeviceLayer] = [KINDS[type(layer)](layer, self.parameters) for layer in network.layers]
        last = max((at for at, layer in enumerate(network.layers) if layer.normalized), default=-1)
        self._reference = as_numbers(network.reference, self.shape, device) if last >= 0 else None
        if self._reference is not None and isinstance(self.layers[0], DeviceStandardize | DeviceConv):
            self.layers[0].prepare(self._reference)
        self._calibrated = self.layers[: last + 1]

    def begin(self, block: int, population: DevicePopulation) -> None:
        self.parameters.begin(block, population)

    def load(self, population: DevicePopulation, rows: torch.Tensor, members: Numbers) -> None:
        self.parameters.load(population, rows, members)
        for layer in self.layers:
            layer.start(rows)
        if self._reference is not None:
            for at in range(len(members)):
                x = self._reference
                for layer in self._calibrated:
                    x = layer.calibrate(rows[at : at + 1], x)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        x = as_images(inputs, self.shape) if self.images else inputs
        for layer in self.layers:
            x = layer.forward(x)
        return x
