"""Networks in torch. Each takes normalised observations and its state's tensors, and returns outputs and the next state."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils import _pytree as pytree

from esker.errors import UsageError
from esker.noise.directions import Vector
from esker.policies.convolution import PIXEL_CLIP, Conv, Flatten, Standardize
from esker.policies.layered import Layered, is_channels_first
from esker.policies.layers import Cell, Dense
from esker.policies.mlp import MLP
from esker.policies.network import Network, split

Tensors = tuple[torch.Tensor, ...]
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "silu": nn.SiLU,
}


def _activation(name: str) -> nn.Module:
    """The torch layer of an activation. A custom one is a NumPy function, and raises UsageError."""
    if name not in ACTIVATIONS:
        raise UsageError(f"activation {name!r} is a NumPy function; export knows {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]()


class TorchNetwork(nn.Module):
    """A network in torch; `batched` says whether it takes any number of observations at once."""

    batched = True

    def initial_state(self) -> Tensors:
        """The tensors an episode begins with; none for a network without memory."""
        return ()


class TorchMLP(TorchNetwork):
    """Linear layers with one activation between them."""

    def __init__(self, network: MLP, parameters: Vector) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(network.sizes):
            layers += [nn.Linear(fan_in, fan_out), _activation(network.activation)]
        self.layers = nn.Sequential(*layers[:-1])
        self.layers.load_state_dict(tensors(network, parameters))

    def forward(self, x: torch.Tensor) -> Tensors:
        return (self.layers(x),)


class TorchLayered(TorchNetwork):
    """A stack of layers. Virtual batch normalisation is constant under fixed weights: it is folded into them."""

    def __init__(self, network: Layered, parameters: Vector) -> None:
        super().__init__()
        self.input_shape, self.images = network.input_shape, network.images
        rows = network.open(1)
        rows.parameters[0] = parameters
        rows.start(0)
        named = tensors(network, parameters)
        pairs = zip(network.layers, rows.layers, strict=True)
        self.layers = nn.ModuleList([_layer(layer, opened, named) for layer, opened in pairs])
        self.sizes = [layer.size for layer in network.layers if isinstance(layer, Cell)]
        self.kinds = [layer.kind for layer in network.layers if isinstance(layer, Cell)]
        self.batched = not self.kinds

    def initial_state(self) -> Tensors:
        each = zip(self.kinds, self.sizes, strict=True)
        return tuple(torch.zeros(1, size) for kind, size in each for _ in range(2 if kind == "lstm" else 1))

    def forward(self, x: torch.Tensor, *state: torch.Tensor) -> Tensors:
        left, after = list(state), []
        x = self._channels_first(x) if self.images else x
        for layer in self.layers:
            if isinstance(layer, TorchCell):
                kept = [left.pop(0) for _ in range(layer.tensors)]
                x, *new = layer(x, *kept)
                after += new
            else:
                x = layer(x)
        return (x, *after)

    def _channels_first(self, x: torch.Tensor) -> torch.Tensor:
        if len(self.input_shape) == 2:
            x = x[:, None]
        elif not is_channels_first(self.input_shape):
            x = x.permute(0, 3, 1, 2)
        return x * (1 / 255)


class TorchCell(nn.Module):
    """An LSTM or GRU cell from linear maps and gates."""

    def __init__(self, layer: Cell, named: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.lstm, self.tensors = layer.kind == "lstm", 2 if layer.kind == "lstm" else 1
        for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            self.register_buffer(part, named[f"{layer.name}.{part}"])

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, *cell: torch.Tensor) -> Tensors:
        given = functional.linear(x, self.weight_ih, self.bias_ih)  # type: ignore[arg-type]
        kept = functional.linear(hidden, self.weight_hh, self.bias_hh)  # type: ignore[arg-type]
        if self.lstm:
            into, forget, new, out = torch.chunk(given + kept, 4, dim=1)
            inner = torch.sigmoid(forget) * cell[0] + torch.sigmoid(into) * torch.tanh(new)
            hidden = torch.sigmoid(out) * torch.tanh(inner)
            return hidden, hidden, inner
        (r, z, n), (ur, uz, un) = torch.chunk(given, 3, dim=1), torch.chunk(kept, 3, dim=1)
        new = torch.tanh(n + torch.sigmoid(r + ur) * un)
        hidden = new + torch.sigmoid(z + uz) * (hidden - new)
        return hidden, hidden


class TorchStandardize(nn.Module):
    """Two constants a pixel, channels first."""

    def __init__(self, mean: Vector, scale: Vector) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(mean).permute(2, 0, 1).contiguous())
        self.register_buffer("scale", torch.from_numpy(scale).permute(2, 0, 1).contiguous())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp((x - self.mean) * self.scale, -float(PIXEL_CLIP), float(PIXEL_CLIP))  # type: ignore[operator]


def _layer(layer: Any, opened: Any, named: dict[str, torch.Tensor]) -> nn.Module:
    """One layer; `opened` knows the scale and shift of a normalising layer."""
    if isinstance(layer, Cell):
        return TorchCell(layer, named)
    if isinstance(layer, Flatten):
        return nn.Flatten()
    if isinstance(layer, Standardize):
        return TorchStandardize(opened.mean, opened.scale)
    if not isinstance(layer, Conv | Dense):
        raise UsageError(f"layers of kind {type(layer).__name__} cannot be exported")
    weight, shift = named[f"{layer.name}.weight"], torch.from_numpy(opened.affine.shift[0].copy())
    if layer.normalized:
        weight = weight * torch.from_numpy(opened.affine.scale[0]).reshape(-1, *[1] * (weight.ndim - 1))
    module: nn.Module
    if isinstance(layer, Conv):
        module = nn.Conv2d(layer.inputs, layer.channels, layer.kernel, layer.stride, layer.padding)
    else:
        module = nn.Linear(layer.inputs, layer.outputs)
    module.load_state_dict({"weight": weight, "bias": shift})
    return nn.Sequential(module, _activation(layer.activation)) if layer.activation else module


class TorchModule(TorchNetwork):
    """A user's module, which need only support one observation at a time."""

    batched = False

    def __init__(self, network: Any, parameters: Vector) -> None:
        super().__init__()
        self.images, self.recurrent = network.images, network.recurrent
        self.module = network.build(seed=0)
        self.module.load_state_dict(tensors(network, parameters), strict=False)  # buffers stay as built
        beginning: Any = self.module.initial_state() if self.recurrent else ()
        self.state, self.spec = pytree.tree_flatten(beginning)

    def initial_state(self) -> Tensors:
        return tuple(self.state)

    def forward(self, x: torch.Tensor, *state: torch.Tensor) -> Tensors:
        x = x * (1 / 255) if self.images else x
        if not self.recurrent:
            return (self.module(x),)
        outputs, after = self.module(x, pytree.tree_unflatten(list(state), self.spec))
        return (outputs, *pytree.tree_leaves(after))


def torch_network(network: Network, parameters: Vector) -> TorchNetwork:
    """The network in torch, with these parameters. One that has no equivalent raises UsageError."""
    if isinstance(network, MLP):
        return TorchMLP(network, parameters)
    if isinstance(network, Layered):
        return TorchLayered(network, parameters)
    if hasattr(network, "path"):
        return TorchModule(network, parameters)
    raise UsageError(f"networks of kind {type(network).__name__} cannot be exported")


def tensors(network: Network, parameters: Vector) -> dict[str, torch.Tensor]:
    """The flat parameters by name, as the torch module has them."""
    parts = split(torch.from_numpy(np.array(parameters)), network.shapes.values())
    return {name: part.clone() for name, part in zip(network.shapes, parts, strict=True)}
