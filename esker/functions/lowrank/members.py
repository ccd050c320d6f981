"""Many members of a module behind one call: inputs for all of them, outputs with a leading member axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from esker.errors import UsageError
from esker.functions.lowrank.loaded import Loaded, split

PLAIN = bool | float | str | None  # a whole number may count rows, which a member alone has fewer of


class LowRankMembers:
    """What `reward_batch` is given: `members(inputs)` for inputs that all share, `members.each(inputs)` for their own.

    Tensors among the arguments carry the batch as their first axis (after the member axis for `each`); other objects, such
    as a key-value cache, are passed on. Outputs come back as (members, batch, …). `module` is the converted module for code
    that works on the flattened batch (members × inputs rows, ordered by member), as generation with a cache does.
    """

    def __init__(self, module: nn.Module, loaded: Loaded, layers: Mapping[str, nn.Module]) -> None:
        self.module = module
        self.loaded = loaded
        self.layers = layers
        self.generation = 0  # under way
        self.start = 0  # the number of the first direction here
        self.keep_call = False  # remember the next call and the layers that it left out, for the check of a run
        self.kept: tuple[Any, Any] | None = None
        self.idle: set[str] = set()

    def __len__(self) -> int:
        return self.loaded.members

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """(n, batch, …) outputs of every member for the same inputs."""
        return self._forward(*mapped(self._repeat, (inputs, keywords)))

    def each(self, *inputs: Any, **keywords: Any) -> Any:
        """(n, batch, …) outputs where every member has its own inputs: the first axis counts members."""
        return self._forward(*mapped(self._flatten, (inputs, keywords)))

    def _repeat(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._cast(tensor.expand(len(self), *tensor.shape).flatten(0, 1) if tensor.ndim else tensor)

    def _flatten(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim < 2 or len(tensor) != len(self):
            raise UsageError(f"each() was given shape {tuple(tensor.shape)}; expected ({len(self)} members, batch, …)")
        return self._cast(tensor.flatten(0, 1))

    def _cast(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.loaded.dtype) if tensor.is_floating_point() else tensor

    def _forward(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        self.loaded.rows = max((len(t) for t in tensors_in((inputs, keywords)) if t.ndim), default=0)
        with torch.no_grad():
            out = self._kept(inputs, keywords) if self.keep_call else self.module(*inputs, **keywords)
        return mapped(lambda t: split(t, 0, len(self), -1) if t.ndim and len(t) % len(self) == 0 else t, out)

    def _kept(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A call that is remembered; one with objects besides tensors and plain values cannot be repeated for a member."""
        self.keep_call, self.idle = False, set(self.layers)
        hooks = [
            layer.register_forward_pre_hook(lambda *_, name=name: self.idle.discard(name))
            for name, layer in self.layers.items()
        ]
        try:
            out = self.module(*inputs, **keywords)
        finally:
            for hook in hooks:
                hook.remove()
        if all(isinstance(value, torch.Tensor | PLAIN) for value in (*inputs, *keywords.values())):
            self.kept = (inputs, keywords), out
        return out


def mapped(function: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """A function applied to the tensors in lists, tuples and mappings; other objects pass."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(function, part) for part in value))
    if isinstance(value, list | tuple):
        return type(value)(mapped(function, part) for part in value)
    if isinstance(value, Mapping):  # transformers' outputs are mappings that are built from keywords
        parts = {name: mapped(function, part) for name, part in value.items()}
        return parts if type(value) is dict else type(value)(**parts)
    return value


def tensors_in(value: Any) -> list[torch.Tensor]:
    """The tensors in lists, tuples and mappings."""
    found: list[torch.Tensor] = []

    def see(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    mapped(see, value)
    return found
