"""The network that a configuration names, for the spaces of an environment."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from esker.errors import UsageError, named_line, nearest
from esker.policies.convolution import Conv, Flatten, Standardize
from esker.policies.layered import Layered, channels_last
from esker.policies.layers import Cell, Dense, Layer
from esker.policies.mlp import MLP, Activation, Initializer, activation_of
from esker.policies.network import Network
from esker.policies.observations import is_image

VECTOR_NETWORKS = ("mlp", "linear", "gru", "lstm")
IMAGE_NETWORKS = ("nature-cnn", "conv-lstm")


class NetworkOptions(Protocol):
    """The options of a configuration that define a network."""

    @property
    def network(self) -> str: ...
    @property
    def hidden(self) -> tuple[int, ...]: ...
    @property
    def activation(self) -> Activation | str: ...
    @property
    def initializer(self) -> Initializer: ...
    @property
    def channels(self) -> int: ...
    @property
    def lstm_size(self) -> int: ...
    @property
    def normalize_observations(self) -> bool: ...


def network_for(config: NetworkOptions, space: gym.Space[Any], outputs: int) -> Network:
    """The network for observations of a space and a number of outputs. One that does not fit raises UsageError."""
    name = config.network
    if ":" in name:
        from esker.policies.module import module_network  # torch is imported only for custom modules

        return module_network(name, observation_shape(space), outputs, images=is_image(space))
    if name not in VECTOR_NETWORKS + IMAGE_NETWORKS:
        known = (*VECTOR_NETWORKS, *IMAGE_NETWORKS)
        raise UsageError(f"unknown network {name!r}{nearest(name, known)}; expected {', '.join(known)} or module:Class")
    if is_image(space) != (name in IMAGE_NETWORKS) and name != "linear":  # which sees an image as a vector
        what, fit = ("images", (*IMAGE_NETWORKS, "linear")) if is_image(space) else ("vectors", VECTOR_NETWORKS)
        text = f"network {name} does not fit: observations are {what} of shape {space.shape}"
        raise UsageError(f"{text}; use --network {', '.join(fit)}, or a module:Class of your own")
    shape = observation_shape(space)
    if name == "nature-cnn":
        return nature_cnn(config, shape, outputs)
    if name == "conv-lstm":
        return conv_lstm(config, shape, outputs)
    check_activation(config.activation)
    if name in ("gru", "lstm"):
        return recurrent(config, shape[0], outputs)
    hidden = () if name == "linear" else config.hidden
    return MLP((math.prod(shape), *hidden, outputs), config.activation, config.initializer)


def check_activation(name: str) -> None:
    """Refuse an activation by path that does not import, or that does not keep the shape of its argument."""
    if ":" not in name:
        return
    found, rows = activation_of(name), np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    try:
        result = found(rows.copy())
    except (Exception, SystemExit) as error:
        raise UsageError(f"activation {name!r} fails on an array: {named_line(error)}") from error
    if result.shape != rows.shape:
        raise UsageError(f"activation {name!r} changes shape {rows.shape} to {result.shape}; expected the same shape")


def observation_shape(space: gym.Space[Any]) -> tuple[int, ...]:
    """An image's own shape; anything else is flattened."""
    if is_image(space):
        assert space.shape is not None
        return space.shape
    return (gym.spaces.flatdim(space),)


@dataclass(frozen=True)
class _Step:
    channels: int
    kernel: int
    stride: int
    padding: int = 0


def nature_cnn(config: NetworkOptions, shape: tuple[int, ...], outputs: int) -> Layered:
    """Mnih et al. 2015, with virtual batch normalisation before every hidden activation (Salimans et al. 2017)."""
    steps = (_Step(32, 8, 4), _Step(64, 4, 2), _Step(64, 3, 1))
    layers, size = _convolutions(shape, steps, "relu", normalized=True)
    layers += [Dense("hidden", size, 512, "relu", normalized=True), Dense("output", 512, outputs)]
    return Layered("nature-cnn", shape, tuple(layers), outputs, config.initializer)


def conv_lstm(config: NetworkOptions, shape: tuple[int, ...], outputs: int) -> Layered:
    """pytorch-es's network for Atari: four strided convolutions, an LSTM, a linear layer."""
    layers, size = _convolutions(shape, (_Step(config.channels, 3, 2, 1),) * 4, "selu", normalized=False)
    if config.normalize_observations:
        layers.insert(0, Standardize())
    layers += [Cell("lstm", "lstm", size, config.lstm_size), Dense("output", config.lstm_size, outputs)]
    return Layered("conv-lstm", shape, tuple(layers), outputs, config.initializer)


def recurrent(config: NetworkOptions, inputs: int, outputs: int) -> Layered:
    """An MLP whose last hidden layer is a recurrent cell."""
    if not config.hidden:
        raise UsageError(f"network {config.network} needs hidden layers, the last of which is its cell; use --hidden 64")
    *sizes, size = config.hidden
    layers: list[Layer] = []
    width = inputs
    for number, layer in enumerate(sizes):
        layers.append(Dense(f"hidden{number}", width, layer, config.activation))
        width = layer
    layers += [Cell(config.network, config.network, width, size), Dense("output", size, outputs)]
    return Layered(config.network, (inputs,), tuple(layers), outputs, config.initializer)


def _convolutions(
    shape: tuple[int, ...], steps: tuple[_Step, ...], activation: str, normalized: bool
) -> tuple[list[Layer], int]:
    """Convolutions in sequence, then flattened; returns the number of outputs."""
    height, width, inputs = channels_last(shape)
    layers: list[Layer] = []
    for number, step in enumerate(steps, start=1):
        conv = Conv(
            f"conv{number}",
            height,
            width,
            inputs,
            step.channels,
            step.kernel,
            step.stride,
            step.padding,
            activation,
            normalized,
        )
        (height, width), inputs = conv.size, step.channels
        if min(height, width) < 1:
            raise UsageError(
                f"images of shape {shape} are too small for these convolutions; enlarge them with a wrapper, "
                "or a game's with --screen-size"
            )
        layers.append(conv)
    return [*layers, Flatten()], height * width * inputs
