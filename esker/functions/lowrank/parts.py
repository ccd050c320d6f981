"""Which parameters of a module move, in which way, and where their noise is among a direction's normals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

import torch
from torch import nn

from esker.errors import UsageError
from esker.functions.parameters import FlatParameters, ParameterLayout

Vectors = Literal["noise", "keep"]
MATRICES = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Embedding)  # and transformers' Conv1D, known by its name


@dataclass(frozen=True)
class Part:
    """One moving tensor, tied ones once: its place in the flat vector and in a direction's normals.

    A direction's normals are the left ones of all parts, then the right ones: A and B of a matrix, E = A Bᵀ/√r; noise for
    every number and nothing of another part.
    """

    name: str
    shape: tuple[int, ...]
    matrix: tuple[int, int] | None  # rows and columns of a low-rank part; None: noise for every number
    at: slice
    left: slice
    right: slice


@dataclass(frozen=True)
class Parts:
    """Everything of a module that moves, in the order of the flat vector."""

    parts: tuple[Part, ...]
    names: tuple[str, ...]  # moving names with tied ones, and the part that each belongs to
    places: tuple[int, ...]
    units: tuple[str, ...]  # modules that are evaluated member by member, since their parts have full noise
    rank: int
    notices: tuple[str, ...]

    @cached_property
    def dimension(self) -> int:
        """How many parameters move."""
        return self.parts[-1].at.stop

    @cached_property
    def lefts(self) -> int:
        """How many of a direction's normals are left ones."""
        return self.parts[-1].left.stop

    @cached_property
    def count(self) -> int:
        """How many normals name a direction."""
        return self.parts[-1].right.stop

    def by_name(self) -> dict[str, Part]:
        """The part of every moving name."""
        return {name: self.parts[place] for name, place in zip(self.names, self.places, strict=True)}


def kept_layout(module: nn.Module, layout: ParameterLayout, vectors: Vectors) -> ParameterLayout:
    """The layout without vectors, where they stay as they are. Nothing left to move raises UsageError."""
    if vectors == "noise":
        return layout
    named = dict(module.named_parameters(remove_duplicate=False))
    left = [(name, place) for name, place in zip(layout.names, layout.places, strict=True) if named[name].ndim > 1]
    if not left:
        raise UsageError("vectors='keep', and the chosen parameters are all vectors; use vectors='noise'")
    order = {place: number for number, place in enumerate(dict.fromkeys(place for _, place in left))}
    return ParameterLayout(tuple(name for name, _ in left), tuple(order[place] for _, place in left))


def parts_of(module: nn.Module, flat: FlatParameters, rank: int) -> Parts:
    """How each moving tensor is perturbed. A rank above a layer's dimensions raises UsageError."""
    names, places = _with_tied(module, flat)
    units = _units(module, names)
    matrices = [_matrix(tensor, number, names, places, units, rank) for number, tensor in enumerate(flat.parts)]
    lefts = [rank * m[0] if m else t.numel() for m, t in zip(matrices, flat.parts, strict=True)]
    rights = [rank * m[1] if m else 0 for m in matrices]
    at, left, right = 0, 0, sum(lefts)
    parts = []
    for number, (tensor, matrix) in enumerate(zip(flat.parts, matrices, strict=True)):
        sizes = tensor.numel(), lefts[number], rights[number]
        slices = slice(at, at + sizes[0]), slice(left, left + sizes[1]), slice(right, right + sizes[2])
        parts.append(Part(names[places.index(number)], tuple(tensor.shape), matrix, *slices))
        at, left, right = at + sizes[0], left + sizes[1], right + sizes[2]
    notices = tuple(_notice(module, unit, flat) for unit in units if not _only_vectors(module, unit, names))
    return Parts(tuple(parts), names, places, units, rank, notices)


def _matrix(
    tensor: torch.Tensor, number: int, names: tuple[str, ...], places: tuple[int, ...], units: tuple[str, ...], rank: int
) -> tuple[int, int] | None:
    """Rows and columns of a tensor that is perturbed by a product of factors; None for one with noise for every number."""
    uses = [name for name, place in zip(names, places, strict=True) if place == number]
    if tensor.ndim < 2 or any(_inside(name, units) for name in uses):
        return None
    rows, columns = tensor.shape[0], prod(tensor.shape[1:])
    if rank > min(rows, columns):
        raise UsageError(
            f"rank is {rank}, and {uses[0]!r} is a {rows}×{columns} matrix; "
            f"use rank={min(rows, columns)} or less, or leave it out with params="
        )
    return rows, columns


def is_matrix_layer(module: nn.Module) -> bool:
    """Whether a thin product can express this layer's perturbation."""
    if type(module).__name__ == "Conv1D" and type(module).__module__.startswith("transformers."):
        return True
    if type(module) not in MATRICES:
        return False
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        return module.padding_mode == "zeros" and not isinstance(module.padding, str)
    return not (isinstance(module, nn.Embedding) and module.max_norm is not None)


def _with_tied(module: nn.Module, flat: FlatParameters) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Every name under which a moving tensor is used; `named_parameters` gives a tied one only once."""
    places = {id(tensor): place for tensor, place in zip(flat.tensors, flat.layout.places, strict=True)}
    found = [(n, places[id(t)]) for n, t in module.named_parameters(remove_duplicate=False) if id(t) in places]
    return tuple(name for name, _ in found), tuple(place for _, place in found)


def _units(module: nn.Module, names: tuple[str, ...]) -> tuple[str, ...]:
    """The outermost modules with a moving parameter that are not matrix layers; attention reads its children's weights."""
    modules = dict(module.named_modules(remove_duplicate=False))
    found = {name.rpartition(".")[0] for name in names}
    units = {owner for owner in found if not is_matrix_layer(modules[owner])}
    for owner, part in modules.items():
        if isinstance(part, nn.MultiheadAttention) and any(_inside(name, (owner,)) for name in names):
            units.add(owner)
    for tied in _tied_names(module, names):  # a tensor that one unit perturbs in full is perturbed so wherever it is used
        if any(_inside(name, tuple(units)) for name in tied):
            units |= {name.rpartition(".")[0] for name in tied}
    return tuple(sorted(u for u in units if not any(_inside(u, (other,)) for other in units if other != u)))


def _tied_names(module: nn.Module, names: tuple[str, ...]) -> list[list[str]]:
    together: dict[int, list[str]] = {}
    for name in names:
        together.setdefault(module.get_parameter(name).data_ptr(), []).append(name)
    return [tied for tied in together.values() if len(tied) > 1]


def _inside(name: str, units: tuple[str, ...]) -> bool:
    return any(not unit or name == unit or name.startswith(unit + ".") for unit in units)


def _only_vectors(module: nn.Module, unit: str, names: tuple[str, ...]) -> bool:
    """Whether a unit is a norm or the like: noise for every number is what its vectors get anyway."""
    return all(module.get_parameter(name).ndim < 2 for name in names if _inside(name, (unit,)))


def _notice(module: nn.Module, unit: str, flat: FlatParameters) -> str:
    kind = type(module.get_submodule(unit)).__name__
    where = f"layer {unit!r} ({kind})" if unit else f"the module itself ({kind})"
    return f"{where} has no low-rank form: full noise, one copy for each member; leave it out with params= if it is large"


def training_statistics(module: nn.Module) -> str | None:
    """The name of a layer that would mix members through batch statistics."""
    for name, part in module.named_modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and (part.training or part.running_mean is None):
            return name or type(part).__name__
    return None
