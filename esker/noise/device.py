"""Members on a torch device: the noise table is there, and rows of parameters are made there by address.

A member has the bits that it has on the CPU: the same slice of the same table, multiplied, then added to the centre.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from esker.noise.directions import Noise
from esker.noise.lowrank import LowRankNoise
from esker.noise.population import CENTER, Population
from esker.noise.table import ALIGN, TableNoise, as_torch

Numbers = NDArray[np.int64]


class DevicePopulation:
    """The population of one generation, as parameters on a device."""

    def __init__(self, noise: Noise, device: torch.device) -> None:
        self.noise = noise
        self.device = device
        self._table = as_torch(noise.table.values).to(device) if isinstance(noise, TableNoise) else None

    def begin(self, population: Population) -> None:
        """Start a generation."""
        self.population = population.bound(self.noise)
        self.center = torch.tensor(population.center, device=self.device)
        self._scale = torch.tensor(population.scale, dtype=torch.float32, device=self.device)

    def parameters(self, members: Numbers, parts: Sequence[slice]) -> Iterator[torch.Tensor]:
        """The chosen members' parameters, one tensor (n, size) for each part of the flat vector."""
        if self._table is None or type(self.population) is not Population:
            yield from self._from_cpu(members, parts)
            return
        assert isinstance(self.noise, TableNoise)
        directions, signs = self.directions(members)
        offsets = self.noise.offsets(self.population.generation, directions)
        places = torch.from_numpy(offsets // ALIGN).to(self.device)
        factors = torch.from_numpy(signs).to(self.device)[:, None]
        for at in parts:
            windows = self._table.as_strided((self.noise.places, at.stop - at.start), (ALIGN, 1), at.start)
            steps = windows.index_select(0, places)
            steps.mul_(factors * (self._scale[at] if self._scale.ndim else self._scale))
            yield steps.add_(self.center[at])

    def factors(self, members: Numbers) -> tuple[torch.Tensor, torch.Tensor]:
        """Of low-rank noise: the normals that name each member's direction, and the signed scale of each."""
        assert isinstance(self.noise, LowRankNoise)
        directions, signs = self.directions(members)
        names, places = np.unique(directions, return_inverse=True)
        drawn = np.stack([self.noise.factors(self.population.generation, int(name)) for name in names])
        factors = torch.from_numpy(drawn).to(self.device)[torch.from_numpy(places).to(self.device)]
        return factors, torch.from_numpy(signs).to(self.device) * self._scale

    def directions(self, members: Numbers) -> tuple[Numbers, NDArray[np.float32]]:
        """The direction of each member and its sign, which is 0 for the centre."""
        pairs = self.population.antithetic
        directions = np.maximum(members // 2 if pairs else members, 0)
        signs = 1 - 2 * (members % 2) if pairs else np.ones_like(members)
        return directions, np.where(members == CENTER, 0, signs).astype(np.float32)

    def _from_cpu(self, members: Numbers, parts: Sequence[slice]) -> Iterator[torch.Tensor]:
        """Noise without a table, and populations of another kind: rows are made by NumPy and copied."""
        rows = np.empty((len(members), len(self.population.center)), dtype=np.float32)
        for row, member in zip(rows, members.tolist(), strict=True):
            if member == CENTER:
                row[:] = self.population.center
            else:
                self.population.write(member, row)
        flat = torch.from_numpy(rows).to(self.device)
        for at in parts:
            yield flat[:, at]
