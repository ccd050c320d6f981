"""A population whose parameters vary together: members centre + σ·A·ε, with A a factor of a full covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from esker.noise.directions import Row, directions
from esker.noise.population import Population

if TYPE_CHECKING:
    import torch

WIDTH = 8  # members of one product; a member is always multiplied in the same place of a product of the same shape


@dataclass(frozen=True)
class CorrelatedPopulation(Population):
    """Members θ + σ·A·εᵢ. The bits of a member do not depend on which others are asked for with it."""

    transform: Row  # A, d×d

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_factor"}

    def write(self, member: int, out: Row) -> None:
        """Write one member's parameters into a row."""
        self._fill(range(member, member + 1), out[None])

    def steps(self, members: Sequence[int]) -> Row:
        """A·ε of some members, as rows."""
        import torch

        from esker.system.torch_threads import one_torch_thread

        out = np.empty((len(members), len(self.center)), dtype=np.float32)
        numbers = np.asarray(members, dtype=np.int64)
        rows, blocks = directions(self._noise, self.generation, numbers), numbers // WIDTH
        with one_torch_thread():
            for block in np.unique(blocks):
                chosen, product = blocks == block, torch.zeros(WIDTH, len(self.center))
                places = numbers[chosen] % WIDTH
                product.numpy()[places] = rows[chosen]
                out[chosen] = (product @ self._factor).numpy()[places]
        return out

    @cached_property
    def _factor(self) -> torch.Tensor:
        """Aᵀ in memory of torch's own alignment, on which a product's bits may depend."""
        import torch

        return torch.from_numpy(self.transform).clone().T

    def _fill(self, members: range, out: Row) -> None:
        steps = self.steps(members)
        steps *= np.float32(self.scale)
        np.add(steps, self.center, out=out)
