"""What runs the policies of thousands of members on a torch device, and which class does it for which network."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import torch

from esker.errors import UsageError
from esker.noise.device import DevicePopulation, Numbers
from esker.noise.directions import Noise
from esker.noise.lowrank import LowRankNoise
from esker.policies.network import Network

CLASSES = {
    "MLP": "esker.policies.device.mlp:DeviceMLP",
    "Layered": "esker.policies.device.layered:DeviceLayered",
    "ModuleNetwork": "esker.policies.device.module:DeviceModule",
}
SHARED = {"MLP": "esker.policies.device.shared_mlp:DeviceSharedMLP"}  # low-rank noise inside the products


class DeviceRows(Protocol):
    """A network opened on a device: row i holds one member's parameters and state."""

    def begin(self, block: int, population: DevicePopulation) -> None:
        """Start a generation of the run that has a block of rows."""
        ...

    def load(self, population: DevicePopulation, rows: torch.Tensor, members: Numbers) -> None:
        """Give some rows the parameters of members, with the state that an episode begins with."""
        ...

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Outputs of all rows for an input each."""
        ...


def open_rows(network: Network, noise: Noise, rows: int, device: torch.device, blocks: int = 1) -> DeviceRows:
    """Rows for a network, in equal blocks if several runs share them. One that cannot be batched raises UsageError."""
    kind = type(network).__name__
    path = SHARED.get(kind) if isinstance(noise, LowRankNoise) else None
    path = path or CLASSES.get(kind)
    if path is None:
        raise UsageError(
            f"a network of kind {kind} has no batched form for a device; use --network mlp, or workers on the CPU"
        )
    module, name = path.split(":")
    opened: Any = getattr(import_module(module), name)
    return opened(network, noise, rows, device, blocks)
