"""Networks made of layers: convolutional and recurrent ones, run in NumPy without torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from esker.noise.directions import Vector
from esker.policies.layers import Layer
from esker.policies.network import Batch, Inputs, Shapes, size, split

Images = NDArray[np.uint8]


@dataclass(frozen=True)
class Layered:
    """A stack of layers over observations of one shape; images are uint8, (height, width), channels first or last."""

    name: str
    input_shape: tuple[int, ...]
    layers: tuple[Layer, ...]
    outputs: int
    initializer: str = "xavier"
    reference: Images | None = field(default=None, compare=False, repr=False)

    @property
    def inputs(self) -> int:
        """How many numbers an observation has."""
        return int(np.prod(self.input_shape))

    @property
    def images(self) -> bool:
        """Whether observations are images."""
        return len(self.input_shape) > 1

    @property
    def normalized(self) -> bool:
        """Whether some layer normalises by a reference batch."""
        return any(layer.normalized for layer in self.layers)

    @cached_property
    def shapes(self) -> Shapes:
        """Names and shapes of the parameters."""
        return {name: shape for layer in self.layers for name, shape in layer.shapes.items()}

    @cached_property
    def dimension(self) -> int:
        """How many parameters it has."""
        return size(self.shapes.values())

    def initial(self, rng: np.random.Generator) -> Vector:
        """Zero biases, unit scales, and weights by the initializer, as in `MLP`."""
        weights = [name for name, shape in self.shapes.items() if len(shape) > 1]
        parts = []
        for name, shape in self.shapes.items():
            if len(shape) > 1:
                parts.append(_weight(rng, shape, self.initializer, last=name == weights[-1]))
            else:
                parts.append(np.full(shape, name.endswith("_norm.weight"), dtype=np.float32))
        return np.concatenate([part.astype(np.float32).ravel() for part in parts])

    def open(self, rows: int) -> LayeredRows:
        """Rows of parameters to be filled and run. A normalising network without its reference batch is refused."""
        if self.normalized and self.reference is None:
            raise ValueError(f"{self.name} normalises by a reference batch and was given none")
        return LayeredRows(self, rows)


class LayeredRows:
    """A stack of layers opened in a worker; see `Rows`."""

    def __init__(self, network: Layered, rows: int) -> None:
        self.network = network
        self.parameters: Batch = np.zeros((rows, network.dimension), dtype=np.float32)
        views = dict(zip(network.shapes, split(self.parameters, network.shapes.values()), strict=True))
        self.layers = [layer.open(rows, views) for layer in network.layers]
        last = max((i for i, layer in enumerate(network.layers) if layer.normalized), default=-1)
        self._calibrated = self.layers[: last + 1]
        self._reference = self._prepare(network.reference) if last >= 0 and network.reference is not None else None

    def _prepare(self, inputs: Inputs) -> Batch:
        """Images become channels-last numbers from 0 to 1; vectors are numbers already."""
        if not self.network.images:
            return inputs.astype(np.float32, copy=False)
        shape = self.network.input_shape
        if is_channels_first(shape):
            inputs = inputs.transpose(0, 2, 3, 1)
        x = inputs.astype(np.float32, order="C").reshape(len(inputs), *channels_last(shape))
        x *= np.float32(1 / 255)
        return x

    def forward(self, inputs: Inputs) -> Batch:
        """Outputs of the first n rows for n observations."""
        x = self._prepare(inputs)
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def start(self, row: int) -> None:
        """Use a row's new parameters, reset its state, and calibrate its normalising statistics."""
        for layer in self.layers:
            layer.start(row)
        x = self._reference
        for layer in self._calibrated:
            assert x is not None
            x = layer.calibrate(row, x)

    def move(self, source: int, target: int) -> None:
        """Copy one row's parameters and state over another's."""
        self.parameters[target] = self.parameters[source]
        for layer in self.layers:
            layer.move(source, target)


def channels_last(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(height, width, channels) of an image space."""
    if len(shape) == 2:
        return shape[0], shape[1], 1
    first, second, third = shape
    return (second, third, first) if is_channels_first(shape) else (first, second, third)


def is_channels_first(shape: tuple[int, ...]) -> bool:
    """Of the two outer axes the shorter one is that of the channels."""
    return len(shape) == 3 and shape[0] < shape[2]


def _weight(rng: np.random.Generator, shape: tuple[int, ...], initializer: str, last: bool) -> NDArray[np.float64]:
    area = int(np.prod(shape[2:]))
    if initializer == "xavier":
        bound = np.sqrt(6.0 / ((shape[0] + shape[1]) * area))
        return rng.uniform(-bound, bound, shape)
    flat = rng.standard_normal((shape[0], int(np.prod(shape[1:]))))
    flat *= (0.01 if last else 1.0) / np.linalg.norm(flat, axis=1, keepdims=True)
    return flat.reshape(shape)
