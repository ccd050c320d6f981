"""Convolutions on a device: the windows of all rows' images gathered once, then one batched product per layer.

Images are (rows, channels, height, width).
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from esker.policies.convolution import PIXEL_CLIP, PIXEL_FLOOR, Conv, Flatten, Standardize
from esker.policies.device.matrices import MatrixRows
from esker.policies.device.mlp import activation_of
from esker.policies.layered import Images, channels_last, is_channels_first
from esker.policies.layers import EPSILON


def as_images(inputs: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Bytes of any layout as numbers from 0 to 1."""
    x = inputs.float()
    if not is_channels_first(shape):
        height, width, channels = channels_last(shape)
        x = x.view(len(x), height, width, channels).permute(0, 3, 1, 2)
    return x.contiguous() * (1 / 255)


def as_numbers(images: Images | None, shape: tuple[int, ...], device: torch.device) -> torch.Tensor | None:
    """A reference batch on a device."""
    return None if images is None else as_images(torch.from_numpy(np.ascontiguousarray(images)).to(device), shape)


class VirtualNorm:
    """y·scale + shift per channel: virtual batch normalisation as two numbers, kept while a row keeps its parameters."""

    def __init__(self, name: str, parameters: MatrixRows) -> None:
        self.gamma, self.beta = parameters.vector(f"{name}_norm.weight"), parameters.vector(f"{name}_norm.bias")
        self.scale, self.shift = torch.ones_like(self.gamma), torch.zeros_like(self.beta)

    def __call__(self, y: torch.Tensor) -> torch.Tensor:
        """Of outputs (rows, channels) or (rows, channels, places)."""
        spread = (..., *(None,) * (y.ndim - 2))
        return torch.addcmul(self.shift[spread], y, self.scale[spread])

    def calibrate(self, row: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Take the statistics of a reference batch's outputs, (samples, channels) or with places; normalise them."""
        axes = [axis for axis in range(y.ndim) if axis != 1]
        mean = y.mean(dim=axes, keepdim=True)
        deviation = torch.sqrt((y - mean).square().mean(dim=axes) + float(EPSILON))
        scale = self.gamma.index_select(0, row)[0] / deviation
        shift = self.beta.index_select(0, row)[0] - mean.flatten() * scale
        self.scale[row], self.shift[row] = scale[None], shift[None]
        spread = (..., *(None,) * (y.ndim - 2))
        return torch.addcmul(shift[spread], y, scale[spread])


class DeviceConv:
    """A square convolution."""

    def __init__(self, layer: Conv, parameters: MatrixRows) -> None:
        self.layer = layer
        self.weight, self.bias = parameters.matrix(f"{layer.name}.weight"), parameters.vector(f"{layer.name}.bias")
        self.norm = VirtualNorm(layer.name, parameters) if layer.normalized else None
        self.activation = activation_of(layer.activation)
        self._reference: torch.Tensor | None = None

    def prepare(self, reference: torch.Tensor) -> None:
        """Keep the windows of the reference batch: the first layer sees the same ones for every member."""
        self._reference = self._windows(reference)

    def start(self, rows: torch.Tensor) -> None:
        """Nothing is remembered."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.weight.columns(self._windows(x))
        y = self.norm(y) if self.norm is not None else y + self.bias[:, :, None]
        return self.activation(y).view(len(x), -1, *self.layer.size)

    def calibrate(self, row: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        windows = self._windows(x) if self._reference is None else self._reference
        y = torch.matmul(self.weight.one(row), windows)
        y = self.norm.calibrate(row, y) if self.norm is not None else y + self.bias.index_select(0, row)[0][:, None]
        return self.activation(y).view(len(x), -1, *self.layer.size)

    def _windows(self, x: torch.Tensor) -> torch.Tensor:
        """(n, channels·k·k, places), in the order of torch's weights."""
        layer = self.layer
        if layer.padding:
            x = functional.pad(x, (layer.padding,) * 4)
        views = x.unfold(2, layer.kernel, layer.stride).unfold(3, layer.kernel, layer.stride)
        return views.permute(0, 1, 4, 5, 2, 3).reshape(len(x), -1, layer.size[0] * layer.size[1])


class DeviceStandardize:
    """Every pixel minus its mean, divided by its deviation, both of the reference batch and the same for all members."""

    def __init__(self, layer: Standardize, parameters: MatrixRows) -> None:
        """Has no parameters; `prepare` gives it its statistics."""

    def prepare(self, reference: torch.Tensor) -> None:
        """Take the statistics of the reference batch."""
        exact = reference.double()
        self.mean = exact.mean(dim=0).float()
        self.scale = (1 / exact.std(dim=0, correction=0).clamp_min(PIXEL_FLOOR)).float()
        self._reference = self.forward(reference)

    def start(self, rows: torch.Tensor) -> None:
        """The same for all rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ((x - self.mean) * self.scale).clamp(-float(PIXEL_CLIP), float(PIXEL_CLIP))

    def calibrate(self, row: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self._reference


class DeviceFlatten:
    """Images to vectors, channel by channel."""

    def __init__(self, layer: Flatten, parameters: MatrixRows) -> None:
        """Has neither parameters nor state."""

    def start(self, rows: torch.Tensor) -> None:
        """Nothing is remembered."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1)

    def calibrate(self, row: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1)
