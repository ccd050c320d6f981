"""Evaluated weights rounded to int8, one scale for each output; the centre and the members' noise stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from esker.errors import UsageError
from esker.functions.lowrank.parts import Parts

STEPS = 127


def round_weights(module: nn.Module, parts: Parts) -> None:
    """Give the moving weights of linear layers int8 storage. Without any such layer raises UsageError."""
    layers: dict[int, list[nn.Module]] = {}
    for name, place in zip(parts.names, parts.places, strict=True):
        layers.setdefault(place, []).append(module.get_submodule(name.rpartition(".")[0]))
    rounded = 0
    for place, users in layers.items():
        if parts.parts[place].matrix is None or not all(type(layer) is nn.Linear for layer in users):
            continue  # an embedding looks rows up; a weight that is tied to one stays as it is
        old: Any = users[0].weight
        weight: Any = nn.Parameter(torch.zeros(old.shape, dtype=torch.int8, device=old.device), requires_grad=False)
        weight.int8_scale = torch.ones(len(old), dtype=old.dtype, device=old.device)
        with torch.no_grad():
            write([weight], [old.float()])
        for layer in users:
            layer.weight = weight
            layer.register_buffer("int8_scale", weight.int8_scale, persistent=False)
        rounded += 1
    if not rounded:
        raise UsageError("int8=True, and no linear layer moves; leave it out, or choose layers with params=")


def write(tensors: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    """Copy float32 values into an evaluated module's parameters, with a cast or rounded to int8."""
    plain = [(t, v) for t, v in zip(tensors, values, strict=True) if t.dtype is not torch.int8]
    if plain:
        torch._foreach_copy_([t for t, _ in plain], [v for _, v in plain])
    for tensor, value in zip(tensors, values, strict=True):
        if tensor.dtype is torch.int8:
            scale: torch.Tensor = tensor.int8_scale  # type: ignore[attr-defined]
            scale.copy_(value.abs().amax(1).clamp(min=1e-12) / STEPS)
            tensor.copy_((value / scale.float()[:, None]).round_().clamp_(-STEPS, STEPS))


def expanded(tensor: torch.Tensor) -> torch.Tensor:
    """A parameter of an evaluated module as float32."""
    if tensor.dtype is not torch.int8:
        return tensor.float()
    return tensor.float() * tensor.int8_scale.float()[:, None]  # type: ignore[attr-defined]
