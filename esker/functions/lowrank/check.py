"""Checks once, on the first call of a run, that the batched forward computes what a member computes alone.

A module that moves its batch to another axis, or reads a layer's weight without calling the layer, would be given another
member's noise or none, and nothing would look wrong. So one member is formed in full and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from esker.errors import UsageError
from esker.functions.lowrank.int8 import expanded
from esker.functions.lowrank.loaded import split
from esker.functions.lowrank.members import LowRankMembers, mapped, tensors_in
from esker.functions.parameters import FlatParameters

ROUNDING = {torch.float32: 1e-3, torch.bfloat16: 3e-2, torch.float16: 1e-2}  # of the size of an output


def check_members(subject: Any, flat: FlatParameters, members: LowRankMembers, note: Callable[[str], None]) -> None:
    """Compare a member with its own forward; an output that differs raises UsageError, an unused layer is noted."""
    if members.idle:
        names = ", ".join(repr(name) for name in sorted(members.idle)[:3])
        note(f"not called by reward_batch: {names}{' …' if len(members.idle) > 3 else ''}; noise there has no effect")
    kept, members.kept = members.kept, None
    if kept is None or any(part.training and isinstance(part, _DropoutNd) for part in subject.modules()):
        return
    inputs, out = kept
    member = members.loaded.mirror - 1  # of the first direction, mirrored where members are
    row = mapped(lambda t: _rows(t, member, len(members)), inputs)
    alone = _first(_alone(subject, flat, members, member, row))
    center = _first(_alone(subject, flat, members, None, row))
    batched = _first(out)
    if alone is None or center is None or batched is None:
        return
    error = torch.linalg.vector_norm(split(batched, 0, len(members), -1)[member].to(alone) - alone)
    moved, size = torch.linalg.vector_norm(alone - center), torch.linalg.vector_norm(alone)
    if error > 0.25 * moved + ROUNDING[members.loaded.dtype] * size:
        raise UsageError(
            "a member's batched output differs from its output alone: the module moves its batch away from the first axis, "
            "or reads weights without calling their layer; use noise='counter', or leave such layers out with params="
        )


def _alone(subject: nn.Module, flat: FlatParameters, members: LowRankMembers, member: int | None, inputs: Any) -> Any:
    """The output of one member (None: the centre) by the user's own module, on its device and in its type."""
    loaded = members.loaded
    like = next(subject.parameters())
    tensors: dict[str, torch.Tensor] = {name: tensor.detach() for name, tensor in subject.named_parameters()}
    tensors |= {name: tensor.clone() for name, tensor in subject.named_buffers()}  # which a forward may change
    moving = loaded.parts.by_name()
    for name, tensor in zip(flat.layout.names, flat.tensors, strict=True):
        value, part = expanded(tensor), moving[name]
        if member is not None:
            value = value + loaded.change(part, member)
        tensors[name] = value.to(like.device, like.dtype)
    args, keywords = mapped(lambda t: t.to(like.device, like.dtype if t.is_floating_point() else t.dtype), inputs)
    with torch.no_grad():
        return torch.func.functional_call(subject, tensors, args, keywords)


def _rows(tensor: torch.Tensor, member: int, members: int) -> torch.Tensor:
    return split(tensor, 0, members, -1)[member] if tensor.ndim and len(tensor) % members == 0 else tensor


def _first(value: Any) -> torch.Tensor | None:
    """The first tensor of floating-point numbers in an output."""
    return next((tensor.float() for tensor in tensors_in(value) if tensor.is_floating_point()), None)
