"""The members that a module's layers stand for at the moment: buffers of noise and scales, overwritten in place."""

from __future__ import annotations

import torch

from esker.functions.lowrank.parts import Part, Parts


class Loaded:
    """Noise of `directions` directions with `mirror` members each (2: +ε and -ε), in buffers that layers keep views of.

    Rows of a flattened batch are ordered by member, and members by direction, so that a batch of members × inputs is a
    view of (directions, mirror × inputs). A member whose scale is zero is the centre.
    """

    def __init__(self, parts: Parts, directions: int, mirror: int, dtype: torch.dtype, device: torch.device) -> None:
        self.parts = parts
        self.directions = directions
        self.mirror = mirror
        self.noise = torch.zeros(directions, parts.count, dtype=dtype, device=device)
        self.scales = torch.zeros(directions, mirror, dtype=dtype, device=device)
        self.rows = 0  # of the batch under way

    @property
    def members(self) -> int:
        """How many members a batch holds."""
        return self.directions * self.mirror

    def load(self, noise: torch.Tensor, scales: torch.Tensor) -> None:
        """Overwrite the first directions; scales are (directions, mirror), and those not given become the centre."""
        self.noise[: len(noise)] = noise
        self.scales.zero_()
        self.scales[: len(scales)] = scales

    def factors(self, part: Part) -> tuple[torch.Tensor, torch.Tensor]:
        """A (directions, rows, r) and B (directions, columns, r) of a low-rank part, as views."""
        assert part.matrix is not None
        (rows, columns), rank = part.matrix, self.parts.rank
        values = self.noise[:, part.noise]
        a, b = values[:, : rows * rank], values[:, rows * rank :]
        return split(a, 1, rows, rank), split(b, 1, columns, rank)

    def full(self, part: Part) -> torch.Tensor:
        """(directions, *shape): a part's noise for every number, as a view."""
        values = self.noise[:, part.noise]
        return split(values, 1, *part.shape) if part.shape else values[:, 0]


def split(tensor: torch.Tensor, axis: int, *sizes: int) -> torch.Tensor:
    """One axis as several."""
    return tensor.unflatten(axis, sizes)  # type: ignore[no-untyped-call]
