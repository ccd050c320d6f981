"""A population whose parameters vary together: members centre + σ·A·ε, with A a factor of a full covariance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from esker.noise.directions import SMALL, Vector, directions
from esker.noise.population import Population

if TYPE_CHECKING:
    import torch

WIDTH = 8  # members of one product; a member is always multiplied in the same place of a product of the same shape


@dataclass(frozen=True)
class CorrelatedPopulation(Population):
    """Members θ + σ·A·εᵢ. The bits of a member do not depend on which others are requested with it."""

    transform: Vector  # A, d×d

    def __getstate__(self) -> dict[str, Any]:
        kept = {"_factor", "_last"}
        return {name: value for name, value in super().__getstate__().items() if name not in kept}

    def write(self, member: int, out: Vector) -> None:
        """Write one member's parameters into a row; the others of its product are kept for the next call."""
        first = member // WIDTH * WIDTH
        np.multiply(self.steps(range(first, first + WIDTH))[1][member - first], np.float32(self.scale), out=out)
        out += self.center

    def steps(self, members: range) -> tuple[Vector, Vector]:
        """ε and A·ε of some members, as read-only rows; those of a small generation are kept until the next call."""
        if self._last.get("members") == members:
            return self._last["steps"]
        steps = self._steps(np.asarray(members, dtype=np.int64))
        if steps[0].size <= SMALL:
            self._last.update(members=members, steps=steps)
        return steps

    def _steps(self, numbers: NDArray[np.int64]) -> tuple[Vector, Vector]:
        import torch

        from esker.system.torch_threads import one_torch_thread

        first = int(numbers[0]) // WIDTH
        rows, blocks = numbers - first * WIDTH, int(numbers[-1]) // WIDTH - first + 1
        padded = torch.zeros(blocks * WIDTH, len(self.center))
        padded.numpy()[rows] = drawn = directions(self._noise, self.generation, numbers)
        with one_torch_thread():
            products = [block @ self._factor for block in padded.view(blocks, WIDTH, -1)]
        return drawn, torch.cat(products).numpy()[rows]

    @cached_property
    def _last(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _factor(self) -> torch.Tensor:
        """Aᵀ in memory of torch's own alignment, on which a product's bits may depend."""
        import torch

        factor = torch.from_numpy(self.transform)
        return (factor if factor.data_ptr() % 64 == 0 else factor.clone()).T

    def _fill(self, members: range, out: Vector) -> None:
        np.multiply(self.steps(members)[1], np.float32(self.scale), out=out)
        out += self.center
