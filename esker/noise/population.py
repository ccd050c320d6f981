"""A population: the members of one generation as addresses, never as an N×d matrix unless a caller asks for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from esker.noise.directions import Noise, Row, directions, perturb

if TYPE_CHECKING:
    import torch

BLOCK = 1 << 18  # numbers perturbed at a time when rows are made: they stay in the cache


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
        """The members as an (n, d) tensor, row by row in member order, with the bits of `write`."""
        import torch

        rows = np.empty((len(self.members), len(self.center)), dtype=np.float32)
        step = max(2, BLOCK // len(self.center) // 2 * 2)
        for start in range(0, len(rows), step):
            self._fill(self.members[start : start + step], rows[start : start + step])
        return torch.from_numpy(rows)

    def _fill(self, members: range, out: Row) -> None:
        """Write some members into rows. A pair that is wanted whole has its direction fetched once."""
        sigma, numbers = np.float32(self.sigma), np.asarray(members, dtype=np.int64)
        if self.antithetic and members.step == 1 and members.start % 2 == 0 and len(members) % 2 == 0:
            steps = directions(self.noise, self.generation, numbers[0::2] // 2) * sigma
            np.add(steps, self.center, out=out[0::2])
            np.subtract(self.center, steps, out=out[1::2])  # θ + (-σ)ε and θ - σε are the same bits
            return
        steps = directions(self.noise, self.generation, numbers // 2 if self.antithetic else numbers)
        signs = 1 - 2 * (numbers % 2) if self.antithetic else np.ones(len(members))
        steps *= (signs.astype(np.float32) * sigma)[:, None]
        np.add(steps, self.center, out=out)
