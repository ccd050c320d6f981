"""The parameters of all rows as one tensor for each name, filled by address."""

from __future__ import annotations

import torch

from esker.noise.device import DevicePopulation, Numbers
from esker.policies.network import Shapes

CHUNK = 1 << 28  # numbers made at a time, so that filling all rows takes little extra memory


class RowParameters:
    """Tensors (rows, *shape), each contiguous: a product's matrices are aligned whatever precedes them."""

    def __init__(self, shapes: Shapes, rows: int, device: torch.device) -> None:
        self.tensors = {name: torch.zeros((rows, *shape), device=device) for name, shape in shapes.items()}
        self._flat = [tensor.view(rows, -1) for tensor in self.tensors.values()]
        self._parts: list[slice] = []
        at = 0
        for flat in self._flat:
            self._parts.append(slice(at, at + flat.shape[1]))
            at += flat.shape[1]
        self._step = max(1, CHUNK // at)

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.tensors[name]

    def load(self, population: DevicePopulation, rows: torch.Tensor, members: Numbers) -> None:
        """Write members into rows."""
        for start in range(0, len(members), self._step):
            chosen = slice(start, start + self._step)
            for flat, part in zip(self._flat, population.parameters(members[chosen], self._parts), strict=True):
                flat.index_copy_(0, rows[chosen], part)
