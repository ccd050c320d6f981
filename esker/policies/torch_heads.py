"""Action heads in torch."""

from __future__ import annotations

import torch
from torch import nn

from esker.errors import UsageError
from esker.policies.heads import BoxHead, DiscreteHead, Head, MultiBinaryHead, MultiDiscreteHead


class Argmax(nn.Module):
    """The largest output of each group wins."""

    start: torch.Tensor

    def __init__(self, choices: tuple[int, ...], start: tuple[int, ...], shape: tuple[int, ...]) -> None:
        super().__init__()
        self.choices, self.shape = choices, shape
        self.register_buffer("start", torch.tensor(start))

    def forward(self, outputs: torch.Tensor) -> torch.Tensor:
        groups = torch.split(outputs, list(self.choices), dim=1)
        actions = torch.stack([group.argmax(dim=1) for group in groups], dim=1) + self.start
        return actions.reshape([-1, *self.shape])


class Positive(nn.Module):
    """A positive output is a one."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, outputs: torch.Tensor) -> torch.Tensor:
        return (outputs > 0).to(torch.int8).reshape([-1, *self.shape])


class Bounded(nn.Module):
    """Continuous actions: clipped to the bounds, squashed by tanh between them, or chosen from bins."""

    low: torch.Tensor
    high: torch.Tensor

    def __init__(self, head: BoxHead) -> None:
        super().__init__()
        self.mode, self.bins, self.shape = str(head.mode), head.bins, tuple(head.low.shape)
        self.register_buffer("low", torch.from_numpy(head.low.reshape(-1).copy()))
        self.register_buffer("high", torch.from_numpy(head.high.reshape(-1).copy()))

    def forward(self, outputs: torch.Tensor) -> torch.Tensor:
        if self.mode == "tanh":
            outputs = self.low + (torch.tanh(outputs) + 1) * (0.5 * (self.high - self.low))
        elif self.mode == "binned":
            chosen = outputs.reshape([-1, self.low.shape[0], self.bins]).argmax(dim=2).to(torch.float32)
            outputs = self.low + chosen * ((self.high - self.low) / (self.bins - 1))
        return torch.minimum(torch.maximum(outputs, self.low), self.high).reshape([-1, *self.shape])


def torch_head(head: Head) -> nn.Module:
    """The action head in torch. A head of another kind raises UsageError."""
    if isinstance(head, DiscreteHead):
        return Argmax((head.outputs,), (head.start,), ())
    if isinstance(head, MultiDiscreteHead):
        return Argmax(head.choices, head.start, head.shape)
    if isinstance(head, MultiBinaryHead):
        return Positive(head.shape)
    if isinstance(head, BoxHead):
        return Bounded(head)
    raise UsageError(f"actions of a {type(head).__name__} cannot be exported")
