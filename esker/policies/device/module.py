"""Any torch module on a device: one vmapped call for all rows."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from esker.errors import UsageError
from esker.noise.device import DevicePopulation, Numbers
from esker.noise.directions import Noise
from esker.policies.device.parameters import RowParameters
from esker.policies.module import ModuleNetwork


class DeviceModule:
    """A torch module opened on a device; see `DeviceRows`. One that vmap cannot batch raises UsageError."""

    def __init__(self, network: ModuleNetwork, noise: Noise, rows: int, device: torch.device, blocks: int = 1) -> None:
        if not network.batched:
            raise UsageError(
                f"network {network.path} cannot be batched by torch.vmap; evaluate it on the CPU, without --world"
            )
        self.images = network.images
        self.module = network.build(seed=0).to(device)
        self.parameters = RowParameters(network.shapes, rows, device)
        self.state: Any = None
        if network.recurrent:
            beginning: Any = self.module.initial_state()  # type: ignore[operator]
            self.initial = pytree.tree_map(lambda t: t.detach().to(device), beginning)
            self.state = pytree.tree_map(lambda t: t.expand(rows, *t.shape).clone(), self.initial)
        self._run = torch.vmap(self._one)

    def begin(self, block: int, population: DevicePopulation) -> None:
        """Rows share nothing."""

    def load(self, population: DevicePopulation, rows: torch.Tensor, members: Numbers) -> None:
        self.parameters.load(population, rows, members)
        if self.state is not None:
            pytree.tree_map(
                lambda kept, initial: kept.index_copy_(0, rows, initial.expand(len(rows), *initial.shape)),
                self.state,
                self.initial,
            )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        x = (inputs * (1 / 255) if self.images else inputs)[:, None]
        if self.state is None:
            return self._run(self.parameters.tensors, x)[:, 0]
        output, after = self._run(self.parameters.tensors, x, self.state)
        pytree.tree_map(lambda kept, new: kept.copy_(new), self.state, after)
        return output[:, 0]

    def _one(self, parameters: dict[str, torch.Tensor], *inputs: Any) -> Any:
        return torch.func.functional_call(self.module, parameters, inputs)
