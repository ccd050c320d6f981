"""Recurrent networks on a device: dense layers and cells, one batched product for each of their matrices."""

from __future__ import annotations

from typing import Protocol

import torch

from esker.errors import UsageError
from esker.noise.device import DevicePopulation, Numbers
from esker.noise.directions import Noise
from esker.policies.device.affine import affine
from esker.policies.device.mlp import activation_of
from esker.policies.device.parameters import RowParameters
from esker.policies.layered import Layered
from esker.policies.layers import Cell, Dense


class DeviceLayer(Protocol):
    """One layer of all rows."""

    def start(self, rows: torch.Tensor) -> None:
        """Forget the state of some rows."""
        ...

    def forward(self, x: torch.Tensor) -> torch.Tensor: ...


class DeviceDense:
    """A fully connected layer."""

    def __init__(self, layer: Dense, parameters: RowParameters) -> None:
        self.weight, self.bias = parameters[f"{layer.name}.weight"], parameters[f"{layer.name}.bias"]
        self.activation = activation_of(layer.activation) if layer.activation else None

    def start(self, rows: torch.Tensor) -> None:
        """Nothing is remembered."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = affine(self.weight, self.bias, x)
        return y if self.activation is None else self.activation(y)


class DeviceCell:
    """A GRU cell, or with `cell` an LSTM cell; the state is changed in place, where a captured graph finds it."""

    def __init__(self, layer: Cell, parameters: RowParameters) -> None:
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        self.from_input, self.from_hidden, self.bias_input, self.bias_hidden = (
            parameters[f"{layer.name}.{name}"] for name in names
        )
        self.hidden = torch.zeros(len(self.from_input), layer.size, device=self.from_input.device)
        self.cell = torch.zeros_like(self.hidden) if layer.kind == "lstm" else None

    def start(self, rows: torch.Tensor) -> None:
        self.hidden[rows] = 0
        if self.cell is not None:
            self.cell[rows] = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = affine(self.from_input, self.bias_input, x)
        kept = affine(self.from_hidden, self.bias_hidden, self.hidden)
        if self.cell is not None:
            into, forget, new, out = torch.chunk(given + kept, 4, dim=1)
            self.cell.copy_(torch.sigmoid(forget) * self.cell + torch.sigmoid(into) * torch.tanh(new))
            return self.hidden.copy_(torch.sigmoid(out) * torch.tanh(self.cell))
        (reset, update, new), (kept_reset, kept_update, kept_new) = torch.chunk(given, 3, 1), torch.chunk(kept, 3, 1)
        new = torch.tanh(new + torch.sigmoid(reset + kept_reset) * kept_new)
        return self.hidden.copy_(new + torch.sigmoid(update + kept_update) * (self.hidden - new))


KINDS = {Dense: DeviceDense, Cell: DeviceCell}


class DeviceLayered:
    """A stack of layers opened on a device; see `DeviceRows`. Convolutions raise UsageError."""

    def __init__(self, network: Layered, noise: Noise, rows: int, device: torch.device, blocks: int = 1) -> None:
        unknown = [layer for layer in network.layers if type(layer) not in KINDS]
        if unknown:
            raise UsageError(
                f"network {network.name} has no batched form for a device; use --network mlp, gru or lstm there"
            )
        self.parameters = RowParameters(network.shapes, rows, device)
        self.layers: list[DeviceLayer] = [KINDS[type(layer)](layer, self.parameters) for layer in network.layers]

    def begin(self, block: int, population: DevicePopulation) -> None:
        """Rows share nothing."""

    def load(self, population: DevicePopulation, rows: torch.Tensor, members: Numbers) -> None:
        self.parameters.load(population, rows, members)
        for layer in self.layers:
            layer.start(rows)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        x = inputs
        for layer in self.layers:
            x = layer.forward(x)
        return x
