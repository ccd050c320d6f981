"""Convolutions in NumPy: windows gathered once, then one matrix product per row.

Images are channels-last inside, so that a window's lines are contiguous and gathering them is a few memory copies.
Rows are taken one at a time: a row's windows stay in the cache, which measured faster than gathering for all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from esker.policies.layers import Affine, Views, norm_shapes
from esker.policies.mlp import activation_of
from esker.policies.network import Batch, Shapes

PIXEL_FLOOR = 0.1  # of the range from black to white; a pixel that never changed has no deviation to divide by
PIXEL_CLIP = np.float32(5)


@dataclass(frozen=True)
class Conv:
    """A square convolution, then virtual batch normalisation if enabled, then an activation."""

    name: str
    height: int
    width: int
    inputs: int
    channels: int
    kernel: int
    stride: int
    padding: int = 0
    activation: str = "relu"
    normalized: bool = False

    @property
    def shapes(self) -> Shapes:
        weight = (self.channels, self.inputs, self.kernel, self.kernel)
        shapes: Shapes = {f"{self.name}.weight": weight, f"{self.name}.bias": (self.channels,)}
        return shapes | (norm_shapes(self.name, self.channels) if self.normalized else {})

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the output."""
        height, width = ((side + 2 * self.padding - self.kernel) // self.stride + 1 for side in (self.height, self.width))
        return height, width

    def open(self, rows: int, views: Views) -> ConvRows:
        return ConvRows(self, rows, views)


class ConvRows:
    """A convolution opened in a worker; takes and returns (n, height, width, channels)."""

    def __init__(self, layer: Conv, rows: int, views: Views) -> None:
        self.layer = layer
        self.weight = views[f"{layer.name}.weight"]
        self.packed = np.zeros((rows, layer.kernel**2 * layer.inputs, layer.channels), dtype=np.float32)
        self.affine = Affine(layer.name, layer.normalized, rows, layer.channels, views)
        self.activation = activation_of(layer.activation)
        self._reference: tuple[Batch, Batch] | None = None

    def forward(self, x: Batch) -> Batch:
        height, width = self.layer.size
        y = np.empty((len(x), height * width, self.layer.channels), dtype=np.float32)
        padded = self._pad(x)
        for row in range(len(x)):
            np.matmul(self._windows(padded[row : row + 1])[0], self.packed[row], out=y[row])
        self.affine(y, slice(len(x)))
        return self.activation(y).reshape(len(x), height, width, self.layer.channels)

    def start(self, row: int) -> None:
        # torch's (out, in, k, k) becomes (k·k·in, out), once per episode instead of at every step
        self.packed[row] = self.weight[row].transpose(2, 3, 1, 0).reshape(self.packed.shape[1:])
        self.affine.start(row)

    def calibrate(self, row: int, x: Batch) -> Batch:
        height, width = self.layer.size
        windows = self._windows_of_reference(x)
        y = np.matmul(windows.reshape(-1, windows.shape[-1]), self.packed[row])
        self.affine.calibrate(row, y)
        self.affine(y, row)
        return self.activation(y).reshape(len(x), height, width, self.layer.channels)

    def move(self, source: int, target: int) -> None:
        self.packed[target] = self.packed[source]
        self.affine.move(source, target)

    def _pad(self, x: Batch) -> Batch:
        edge = self.layer.padding
        if not edge:
            return np.ascontiguousarray(x)
        n, height, width, channels = x.shape
        padded = np.zeros((n, height + 2 * edge, width + 2 * edge, channels), dtype=np.float32)
        padded[:, edge:-edge, edge:-edge] = x
        return padded

    def _windows(self, x: Batch) -> Batch:
        """(n, places, k·k·channels) of a padded, contiguous batch."""
        kernel, stride, (height, width) = self.layer.kernel, self.layer.stride, self.layer.size
        image, line, pixel, number = x.strides
        shape = (len(x), height, width, kernel, kernel * self.layer.inputs)
        view = as_strided(x, shape, (image, line * stride, pixel * stride, line, number), writeable=False)
        return np.ascontiguousarray(view).reshape(len(x), height * width, -1)

    def _windows_of_reference(self, x: Batch) -> Batch:
        """The first layer sees the same reference batch for every member: its windows are gathered once."""
        if self._reference is None or self._reference[0] is not x:
            self._reference = x, self._windows(self._pad(x))
        return self._reference[1]


@dataclass(frozen=True)
class Standardize:
    """Every pixel minus its mean, divided by its deviation, both of the reference batch and the same for all members.

    Constant pixels become zero and moving ones stand out: without it a game's background outweighs its ball,
    and most members act the same.
    """

    normalized: bool = True

    @property
    def shapes(self) -> Shapes:
        return {}

    def open(self, rows: int, views: Views) -> StandardizeRows:
        return StandardizeRows()


class StandardizeRows:
    """Holds two constants per pixel, computed when a row first starts."""

    def __init__(self) -> None:
        self._reference: tuple[Batch, Batch] | None = None

    def forward(self, x: Batch) -> Batch:
        x = (x - self.mean) * self.scale
        np.maximum(x, -PIXEL_CLIP, out=x)
        np.minimum(x, PIXEL_CLIP, out=x)
        return x

    def start(self, row: int) -> None: ...

    def calibrate(self, row: int, x: Batch) -> Batch:
        if self._reference is None or self._reference[0] is not x:
            self.mean = x.mean(axis=0, dtype=np.float64).astype(np.float32)
            deviation = x.std(axis=0, dtype=np.float64)
            self.scale = (1 / np.maximum(deviation, PIXEL_FLOOR)).astype(np.float32)
            self._reference = x, self.forward(x)
        return self._reference[1]

    def move(self, source: int, target: int) -> None: ...


@dataclass(frozen=True)
class Flatten:
    """Images to vectors in torch's order: channel by channel."""

    normalized: bool = False

    @property
    def shapes(self) -> Shapes:
        return {}

    def open(self, rows: int, views: Views) -> FlattenRows:
        return FlattenRows()


class FlattenRows:
    """Has neither parameters nor state."""

    def forward(self, x: Batch) -> Batch:
        return x.reshape(len(x), -1, x.shape[-1]).transpose(0, 2, 1).reshape(len(x), -1)

    def start(self, row: int) -> None: ...

    def calibrate(self, row: int, x: Batch) -> Batch:
        return self.forward(x)

    def move(self, source: int, target: int) -> None: ...
