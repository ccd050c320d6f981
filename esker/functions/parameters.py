"""Parameters as one flat float32 vector: the tensors of a module that may move, a list of tensors, or a single one.

Tensors that share memory (tied weights) appear once. Perturbing happens in float32 whatever the tensors' type: they are
only ever overwritten with a cast, never added to in place, so nothing accumulates in low precision.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from esker.errors import UsageError, named_line, nearest
from esker.noise.directions import Vector
from esker.policies.network import size, split

Subject = nn.Module | torch.Tensor | Sequence[torch.Tensor]
Filter = Callable[[str, torch.Tensor], bool] | Iterable[str]


@dataclass(frozen=True)
class ParameterLayout:
    """Which tensors of a subject move, and which part of the flat vector each of them holds; tied ones hold the same."""

    names: tuple[str, ...]
    places: tuple[int, ...]


def layout_of(subject: Subject, params: Filter | None = None) -> ParameterLayout:
    """The layout of what may move: not frozen, and chosen by `params` (names or patterns, or a function of name and tensor).

    Nothing to move, or something that cannot be perturbed, raises UsageError.
    """
    chosen = _movable(_chosen(_named(subject), params), subject, everything=params is None)
    parts: dict[object, int] = {}
    places = tuple(parts.setdefault(_memory(tensor), len(parts)) for _, tensor in chosen)
    return ParameterLayout(tuple(name for name, _ in chosen), places)


class FlatParameters:
    """The moving tensors of a subject as one vector. A copy of the subject has the layout of its original."""

    def __init__(self, subject: Subject, layout: ParameterLayout) -> None:
        self.subject = subject
        self.layout = layout
        named = dict(_named(subject))
        self.tensors = [named[name] for name in layout.names]
        firsts = [layout.places.index(part) for part in range(max(layout.places) + 1)]
        self.parts = [self.tensors[first] for first in firsts]
        self.shapes = [tensor.shape for tensor in self.parts]
        self.dimension = size(self.shapes)
        self._row: Vector | None = None

    def read(self) -> Vector:
        """The tensors as one vector."""
        parts = [tensor.detach().to("cpu", torch.float32).reshape(-1) for tensor in self.parts]
        return torch.cat(parts).numpy()

    def write(self, row: Vector) -> None:
        """Overwrite the tensors in place: type, device and requires_grad stay what they are."""
        if row is not self._row:  # a worker writes the same row again and again: its parts are views, made once
            self._row, self._parts = row, split(torch.from_numpy(row), self.shapes)
        with torch.no_grad():
            for tensor, place in zip(self.tensors, self.layout.places, strict=True):
                tensor.copy_(self._parts[place])

    def stacked(self, rows: torch.Tensor) -> list[torch.Tensor]:
        """For each name, a vector's part in the shape and type of its tensor; of (n, d) rows, n of them."""
        parts = [part.to(like.dtype) for part, like in zip(split(rows, self.shapes), self.parts, strict=True)]
        return [parts[place] for place in self.layout.places]

    def in_place_of(self, rows: torch.Tensor) -> Any:
        """A tensor or a list like the subject, with the parts of a vector (or stacked ones) where tensors move."""
        parts = self.stacked(rows)
        if isinstance(self.subject, torch.Tensor):
            return parts[0]
        if isinstance(self.subject, nn.Module):  # its parameters in their order, the frozen ones as they are
            named = dict(self.subject.named_parameters())
            return list({**named, **dict(zip(self.layout.names, parts, strict=True))}.values())
        moved = dict(zip(self.layout.names, parts, strict=True))
        return [moved.get(str(number), tensor) for number, tensor in enumerate(self.subject)]

    def describe(self) -> list[list[object]]:
        """Names and shapes, to check that another model has the same layout."""
        return [[name, list(tensor.shape)] for name, tensor in zip(self.layout.names, self.tensors, strict=True)]


def _named(subject: Subject) -> list[tuple[str, torch.Tensor]]:
    if isinstance(subject, nn.Module):
        return list(subject.named_parameters())
    if isinstance(subject, torch.Tensor):
        return [("0", subject)]
    if not isinstance(subject, list | tuple) or not all(isinstance(part, torch.Tensor) for part in subject):
        raise UsageError(f"model is a {type(subject).__name__}; expected a torch module, a tensor or a list of tensors")
    return [(str(number), tensor) for number, tensor in enumerate(subject)]


def _chosen(named: list[tuple[str, torch.Tensor]], params: Filter | None) -> list[tuple[str, torch.Tensor]]:
    if params is None:
        return named
    if callable(params):
        return [(name, tensor) for name, tensor in named if _wanted(params, name, tensor)]
    known = [name for name, _ in named]
    given = [params] if isinstance(params, str) else list(params)
    wanted = {name for pattern in given for name in _matching(pattern, known)}
    return [(name, tensor) for name, tensor in named if name in wanted]


def _wanted(params: Callable[[str, torch.Tensor], bool], name: str, tensor: torch.Tensor) -> bool:
    """Whether a filter chooses a parameter. One that returns neither true nor false raises UsageError."""
    chosen = params(name, tensor)
    try:
        return bool(chosen)
    except Exception as error:
        kind = type(chosen).__name__
        raise UsageError(f"params returned a {kind} for {name!r}; expected True or False ({named_line(error)})") from error


def _matching(pattern: str, known: list[str]) -> list[str]:
    """The names that a name or a pattern of * and ? stands for. None at all raises UsageError."""
    names = [pattern] if pattern in known else fnmatch.filter(known, pattern)
    if not names:
        raise UsageError(f"params names {pattern!r}, and the model has no such parameter{nearest(pattern, known)}")
    return names


def _movable(chosen: list[tuple[str, torch.Tensor]], subject: Subject, everything: bool) -> list[tuple[str, torch.Tensor]]:
    """Those that are not frozen. None at all, or one that cannot be perturbed, raises UsageError."""
    if not chosen:
        what = "the model has no parameters" if everything else "params chooses no parameter of the model"
        raise UsageError(f"{what}; there is nothing to evolve")
    if not everything and not isinstance(subject, nn.Module):
        raise UsageError("params is for modules; leave out of the list what must not move")
    moving = [(name, t) for name, t in chosen if t.requires_grad or not isinstance(t, nn.Parameter)]
    if not moving:
        raise UsageError("every chosen parameter is frozen (requires_grad=False); set it to True on those that may move")
    for name, tensor in moving:
        if isinstance(tensor, nn.parameter.UninitializedParameter) or tensor.is_meta:
            raise UsageError(f"parameter {name!r} has no values yet; run the model once, or move it off the meta device")
        if not tensor.numel():
            raise UsageError(f"parameter {name!r} is empty; leave it out with params=")
        if not tensor.is_floating_point():
            raise UsageError(f"parameter {name!r} is {tensor.dtype}; only floating-point parameters can be perturbed")
    return moving


def _memory(tensor: torch.Tensor) -> object:
    """What tied tensors have in common."""
    return tensor.device, tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype
