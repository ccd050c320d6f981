"""The members that a module's layers currently represent: buffers of noise, overwritten in place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from math import sqrt

import torch

from esker.functions.lowrank.parts import Part, Parts


class Loaded:
    """Noise of `directions` directions with `mirror` members each (2: +ε and -ε), in buffers that layers keep views of.

    Rows of a flattened batch are ordered by member, and members by direction, so that a batch of members × inputs is a
    view of (directions, mirror × inputs). Left normals are kept for each member, times its scale and 1/√r: a product with
    them needs nothing more. Right ones are kept for each direction. A member whose scale is zero is the centre.
    """

    def __init__(self, parts: Parts, directions: int, mirror: int, dtype: torch.dtype, device: torch.device) -> None:
        self.parts = parts
        self.directions = directions
        self.mirror = mirror
        self.left = torch.zeros(directions * mirror, parts.lefts, dtype=dtype, device=device)
        self.right = torch.zeros(directions, parts.count - parts.lefts, dtype=dtype, device=device)
        self.rows = 0  # of the batch under way
        self._roots = torch.ones(parts.lefts, device=device)
        for part in parts.parts:
            if part.matrix is not None:
                self._roots[part.left] = 1 / sqrt(parts.rank)

    @property
    def members(self) -> int:
        """How many members a batch holds."""
        return self.directions * self.mirror

    @property
    def dtype(self) -> torch.dtype:
        """The type that members are evaluated in."""
        return self.left.dtype

    def load(self, normals: torch.Tensor, scales: torch.Tensor) -> None:
        """Let the first members be those of some directions; scales are (directions, mirror). The others are the centre."""
        count = len(scales)
        left = normals[:count, : self.parts.lefts] * self._roots
        parted = split(self.left, 0, self.directions, self.mirror)
        parted[:count] = left[:, None] * scales[:, :, None]
        parted[count:] = 0
        self.right[:count] = normals[:count, self.parts.lefts :]

    @contextlib.contextmanager
    def centered(self) -> Iterator[None]:
        """Let every member be the centre for a while."""
        kept = self.left.clone()
        self.left.zero_()
        try:
            yield
        finally:
            self.left.copy_(kept)

    def factors(self, part: Part) -> tuple[torch.Tensor, torch.Tensor]:
        """sA/√r (members, rows, r) and B (directions, columns, r) of a low-rank part, as views."""
        assert part.matrix is not None
        start = self.parts.lefts
        right = self.right[:, part.right.start - start : part.right.stop - start]
        rows, columns = part.matrix
        return split(self.left[:, part.left], 1, rows, self.parts.rank), split(right, 1, columns, self.parts.rank)

    def full(self, part: Part) -> torch.Tensor:
        """(members, *shape): sε of a part with noise for every number, as a view."""
        values = self.left[:, part.left]
        return split(values, 1, *part.shape) if part.shape else values[:, 0]

    def change(self, part: Part, member: int) -> torch.Tensor:
        """What a member adds to a part of the centre, in full; for checks."""
        if part.matrix is None:
            return self.full(part)[member].float()
        a, b = self.factors(part)
        return (a[member].float() @ b[member // self.mirror].float().T).reshape(part.shape)


def split(tensor: torch.Tensor, axis: int, *sizes: int) -> torch.Tensor:
    """One axis as several."""
    return tensor.unflatten(axis, sizes)  # type: ignore[no-untyped-call]
