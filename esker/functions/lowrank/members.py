"""Many members of a module behind one call: inputs for all of them, outputs with a leading member axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from esker.errors import UsageError
from esker.functions.lowrank.loaded import Loaded

# How far a batched output may lie from the same member's own, in parts of its size: rounding, by type.
ROUNDING = {torch.float32: 1e-3, torch.bfloat16: 3e-2, torch.float16: 5e-3}


class LowRankMembers:
    """What `reward_batch` is given: `members(inputs)` for inputs that all share, `members.each(inputs)` for their own.

    Tensors among the arguments carry the batch as their first axis (after the member axis for `each`); other objects, such
    as a key-value cache, are passed on. Outputs come back as (members, batch, …). `module` is the converted module for code
    that works on the flattened batch (members × inputs rows, ordered by member), as generation with a cache does.
    """

    def __init__(self, module: nn.Module, loaded: Loaded) -> None:
        self.module = module
        self.loaded = loaded

    def __len__(self) -> int:
        return self.loaded.members

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """(n, batch, …) outputs of every member for the same inputs."""
        shared = _map(self._repeat, (inputs, keywords))
        return self._forward(*shared)

    def each(self, *inputs: Any, **keywords: Any) -> Any:
        """(n, batch, …) outputs where every member has inputs of its own: the first axis counts members."""
        own = _map(self._flatten, (inputs, keywords))
        return self._forward(*own)

    def _repeat(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.expand(len(self), *tensor.shape).flatten(0, 1) if tensor.ndim else tensor

    def _flatten(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim < 2 or len(tensor) != len(self):
            raise UsageError(f"each() was given shape {tuple(tensor.shape)}; expected ({len(self)} members, batch, …)")
        return tensor.flatten(0, 1)

    def _forward(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        rows = {len(tensor) for tensor in _tensors((inputs, keywords)) if tensor.ndim}
        self.loaded.rows = max(rows, default=0)
        with torch.no_grad():
            out = self.module(*inputs, **keywords)
        return _map(lambda t: t.unflatten(0, (len(self), -1)) if t.ndim and len(t) % len(self) == 0 else t, out)


def _map(function: Any, value: Any) -> Any:
    """Apply a function to the tensors in lists, tuples and mappings; other objects pass."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map(function, part) for part in value))
    if isinstance(value, list | tuple):
        return type(value)(_map(function, part) for part in value)
    if isinstance(value, Mapping):  # transformers' outputs are mappings that are built from keywords
        mapped = {name: _map(function, part) for name, part in value.items()}
        return mapped if type(value) is dict else type(value)(**mapped)
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    _map(lambda tensor: found.append(tensor) or tensor, value)  # type: ignore[func-returns-value]
    return found
