"""A population: the members of one generation as addresses, never as an N×d matrix unless a caller asks for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from esker.noise import Noise, Row, perturb

if TYPE_CHECKING:
    import torch


def direction_of(member: int, antithetic: bool) -> tuple[int, int]:
    """The direction a member explores and its sign: members 2k and 2k+1 are +εₖ and -εₖ, or member i is +εᵢ."""
    return (member // 2, 1 - 2 * (member % 2)) if antithetic else (member, 1)


def by_direction(weights: NDArray[np.float64], antithetic: bool) -> NDArray[np.float64]:
    """One weight per direction: w⁺ - w⁻ over pairs, or w itself."""
    return weights[0::2] - weights[1::2] if antithetic else weights


@dataclass(frozen=True)
class Population:
    """Members θ ± σε of one generation; `members` is the range of numbers that this object stands for."""

    center: Row
    sigma: float
    generation: int
    antithetic: bool
    noise: Noise
    members: range

    def __len__(self) -> int:
        return len(self.members)

    def write(self, member: int, out: Row) -> None:
        """Write one member's parameters into a row."""
        direction, sign = direction_of(member, self.antithetic)
        perturb(self.noise, self.center, sign * self.sigma, self.generation, direction, out)

    def parameters(self) -> torch.Tensor:
        """The members as an (n, d) tensor, row by row in member order."""
        import torch

        rows = np.empty((len(self.members), len(self.center)), dtype=np.float32)
        for row, member in zip(rows, self.members, strict=True):
            self.write(member, row)
        return torch.from_numpy(rows)
