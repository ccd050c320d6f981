"""A population: the members of one generation as addresses, never as an N×d matrix unless a caller asks for one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from esker.noise.directions import Noise, Vector, directions, perturb

if TYPE_CHECKING:
    import torch

CENTER = -1  # the member number of the centre, where one is needed
BLOCK = 1 << 18  # numbers perturbed at a time when rows are made: they stay in the cache


def direction_of(member: int, antithetic: bool) -> tuple[int, int]:
    """The direction a member explores and its sign: members 2k and 2k+1 are +εₖ and -εₖ, or member i is +εᵢ."""
    return (member // 2, 1 - 2 * (member % 2)) if antithetic else (member, 1)


def by_direction(weights: NDArray[np.float64], antithetic: bool) -> NDArray[np.float64]:
    """One weight per direction: w⁺ - w⁻ over pairs, or w itself."""
    return weights[0::2] - weights[1::2] if antithetic else weights


def of_squares(weights: NDArray[np.float64], antithetic: bool) -> NDArray[np.float64]:
    """One weight per direction for what both members of a pair share, as ε²: w⁺ + w⁻ over pairs, or w itself."""
    return weights[0::2] + weights[1::2] if antithetic else weights


@dataclass(frozen=True)
class Population:
    """Members θ ± scale·ε of one generation; `members` is the range of member numbers in this object.

    It is sent without its noise: a receiver binds its own copy of the noise.
    """

    center: Vector
    scale: float | Vector  # one for all parameters, or one for each
    generation: int
    antithetic: bool
    noise: Noise | None
    members: range

    def __len__(self) -> int:
        return len(self.members)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "noise": None}

    @property
    def sigma(self) -> float:
        """The scale; its mean where each parameter has its own."""
        return float(np.mean(self.scale, dtype=np.float64)) if isinstance(self.scale, np.ndarray) else self.scale

    def bound(self, noise: Noise) -> Self:
        """This population with directions from `noise`."""
        return replace(self, noise=noise)

    def select(self, members: range) -> Self:
        """The same generation for another range of members."""
        return replace(self, members=members)

    def write(self, member: int, out: Vector) -> None:
        """Write one member's parameters into a row."""
        direction, sign = direction_of(member, self.antithetic)
        perturb(self._noise, self.center, sign * self.scale, self.generation, direction, out)

    def parameters(self) -> torch.Tensor:
        """The members as an (n, d) tensor, row by row in member order, with the bits of `write`."""
        import torch

        rows = np.empty((len(self.members), len(self.center)), dtype=np.float32)
        step = max(2, BLOCK // len(self.center) // 2 * 2)
        for start in range(0, len(rows), step):
            self._fill(self.members[start : start + step], rows[start : start + step])
        return torch.from_numpy(rows)

    @property
    def _noise(self) -> Noise:
        if self.noise is None:
            raise ValueError("this population was sent without its noise; bind it first: population.bound(noise)")
        return self.noise

    def _fill(self, members: range, out: Vector) -> None:
        """Write some members into rows. A pair that is wanted whole has its direction fetched once."""
        scale, numbers = np.asarray(self.scale, dtype=np.float32), np.arange(members.start, members.stop, members.step)
        if self.antithetic and members.step == 1 and members.start % 2 == 0 and len(members) % 2 == 0:
            steps = directions(self._noise, self.generation, numbers[0::2] // 2) * scale
            np.add(steps, self.center, out=out[0::2])
            np.subtract(self.center, steps, out=out[1::2])  # θ + (-σ)ε and θ - σε are the same bits
            return
        steps = directions(self._noise, self.generation, numbers // 2 if self.antithetic else numbers)
        signs = 1 - 2 * (numbers % 2) if self.antithetic else np.ones(len(members))
        steps *= signs.astype(np.float32)[:, None] * scale
        np.add(steps, self.center, out=out)
