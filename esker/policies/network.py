"""What a network must offer so that a worker can run one member per row."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from esker.noise.directions import Vector

Batch = NDArray[np.float32]
Inputs = NDArray[Any]
Shapes = dict[str, tuple[int, ...]]  # parameters by name, in the order of the flat vector


def size(shapes: Iterable[tuple[int, ...]]) -> int:
    """How many numbers arrays of these shapes hold together."""
    return sum(math.prod(shape) for shape in shapes)


def split(flat: Any, shapes: Iterable[tuple[int, ...]]) -> list[Any]:
    """Views of a flat vector, or of rows of them, in these shapes one after the other; NumPy's or torch's as given."""
    parts, at = [], 0
    for shape in shapes:
        end = at + math.prod(shape)
        parts.append(flat[..., at:end].reshape(*flat.shape[:-1], *shape))
        at = end
    return parts


class Rows(Protocol):
    """A network opened in a worker: row i holds one member's parameters and state."""

    parameters: Batch

    def forward(self, inputs: Inputs) -> Batch:
        """Outputs of rows 0..n-1 for n inputs, numbers or images. A row's bits depend neither on n nor on its place."""
        ...

    def start(self, row: int) -> None:
        """A new episode begins in this row, with the parameters just written there."""
        ...

    def move(self, source: int, target: int) -> None:
        """Copy one row's parameters and state over another's."""
        ...


class Network(Protocol):
    """A description of a network: cheap to ship, opened where it runs."""

    @property
    def inputs(self) -> int:
        """How many numbers an observation has."""
        ...

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of an observation; more than one axis makes it an image of bytes."""
        ...

    @property
    def outputs(self) -> int: ...

    @property
    def dimension(self) -> int:
        """How many parameters it has."""
        ...

    @property
    def shapes(self) -> Shapes:
        """Names and shapes of the parameters, as the equivalent torch module has them."""
        ...

    def initial(self, rng: np.random.Generator) -> Vector:
        """Initial parameters, in the order of the equivalent torch module's."""
        ...

    def open(self, rows: int) -> Rows: ...
