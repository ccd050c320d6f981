"""Layers that evaluate many members at once: one product with the centre's weight for all, a thin one for each.

A module is converted by giving its layers these classes instead of their own: parameters, hooks and names stay. For a
matrix W and E = A Bᵀ/√r a member's output is x Wᵀ + (x B) (sA/√r)ᵀ, and neither W + sE nor E is ever formed.
"""

from __future__ import annotations

import copy
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from esker.errors import UsageError
from esker.functions.lowrank.loaded import Loaded, split
from esker.functions.lowrank.parts import Part, Parts, is_matrix_layer

TENSOR = object()  # placeholder of a tensor in an output
FEW_ROWS = (
    8  # with at most this many rows for each direction, a sum of products is faster on a CPU than a product of matrices
)
FUSED_RANK = 4  # up to this rank a compiler is given sums of products, which it fuses into its neighbours


class Thin:
    """One layer's share of the loaded members: views of its weight's factors and of its bias's noise."""

    def __init__(self, loaded: Loaded, weight: Part | None, bias: Part | None) -> None:
        self.loaded = loaded
        self.factors = None if weight is None else loaded.factors(weight)
        self.bias = None if bias is None else loaded.full(bias)  # (members, channels)

    def add(self, x: torch.Tensor, y: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """y + (x first) secondᵀ for rows ordered by member; either factor has members or directions as its first axis."""
        check_rows(x, self.loaded.members)
        if torch.compiler.is_compiling() and self.loaded.parts.rank <= FUSED_RANK:
            return self._fused(x, y, first, second)
        rows = x.reshape(len(first), -1, x.shape[-1])
        if self.loaded.parts.rank == 1 and rows.shape[1] <= FEW_ROWS and not x.is_cuda:
            return self.spread(torch.linalg.vecdot(rows, first[:, None, :, 0])[..., None], y, second)
        return self.spread(torch.bmm(rows, first), y, second)

    def spread(self, inner: torch.Tensor, y: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """y + inner secondᵀ."""
        out = y.reshape(len(second), -1, y.shape[-1])
        inner = inner.reshape(len(second), -1, inner.shape[-1])
        add = out.addcmul_ if inner.shape[-1] == 1 else out.baddbmm_  # a product of rank 1 is a pass over y
        return add(inner, second.transpose(1, 2)).reshape(y.shape)

    def _fused(self, x: torch.Tensor, y: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """The same as sums of products, which a compiler fuses with what comes before and after."""
        rows, total = x.reshape(len(first), -1, x.shape[-1]).float(), y.reshape(len(second), -1, y.shape[-1]).float()
        for r in range(self.loaded.parts.rank):
            inner = (rows * first[:, None, :, r].float()).sum(-1)
            total = total + inner.reshape(len(second), -1, 1) * second[:, None, :, r].float()
        return total.to(y.dtype).reshape(y.shape)

    def add_bias(self, y: torch.Tensor, channel: int = -1) -> torch.Tensor:
        """y + sε of the bias, along the axis of y that holds channels."""
        if self.bias is None:
            return y
        parted = split(y, 0, self.loaded.members, -1)
        shape = [1] * parted.ndim
        shape[0], shape[channel if channel < 0 else channel + 1] = self.bias.shape
        return parted.add_(self.bias.reshape(shape)).flatten(0, 1)


def check_rows(x: torch.Tensor, members: int) -> None:
    """A first axis that cannot hold the members raises UsageError."""
    if x.shape[0] % members:
        raise UsageError(
            f"a layer was given a batch of shape {tuple(x.shape)} for {members} members: the module moves its batch away "
            "from the first axis; use noise='counter', or leave that layer out with params="
        )


class MembersLinear(nn.Linear):
    """nn.Linear for many members."""

    thin: Thin
    int8_scale: torch.Tensor  # of weights that are rounded to int8: the size of a step, for each output

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Rows of the first axis belong to members in their order."""
        if self.weight.dtype is torch.int8:
            y = F.linear(input, self.weight.to(input.dtype)) * self.int8_scale
            y = y if self.bias is None else y + self.bias
        else:
            y = F.linear(input, self.weight, self.bias)
        if self.thin.factors is not None:
            a, b = self.thin.factors
            y = self.thin.add(input, y, b, a)
        return self.thin.add_bias(y)


class MembersEmbedding(nn.Embedding):
    """nn.Embedding for many members: row i of E is A[i] Bᵀ/√r."""

    thin: Thin

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Indices, ordered by member."""
        y = F.embedding(input, self.weight, self.padding_idx)
        if self.thin.factors is None:
            return y
        a, b = self.thin.factors
        index = input.reshape(len(a), -1, 1).expand(-1, -1, a.shape[-1])
        return self.thin.spread(a.gather(1, index), y, b)


class _MembersConv:
    """What Conv1d and Conv2d share: r filters for each direction, then a thin product over their outputs."""

    thin: Thin

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(rows, channels, …), rows ordered by member."""
        y = self._conv_forward(input, self.weight, self.bias)  # type: ignore[attr-defined]
        if self.thin.factors is not None:
            y = y + self._perturbation(input, *self.thin.factors)
        return self.thin.add_bias(y, channel=1)

    def _perturbation(self, input: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        layer: Any = self
        loaded, rank, groups = self.thin.loaded, self.thin.loaded.parts.rank, layer.groups
        count = loaded.directions
        filters = b.transpose(1, 2).reshape(count, 1, rank, *layer.weight.shape[1:])  # the same for each group of channels
        filters = filters.expand(-1, groups, *filters.shape[2:]).reshape(count * groups * rank, *layer.weight.shape[1:])
        side = split(input, 0, count, -1).transpose(0, 1).flatten(1, 2)  # directions side by side, as channels
        convolve = F.conv2d if input.ndim == 4 else F.conv1d
        inner = convolve(side, filters, None, layer.stride, layer.padding, layer.dilation, count * groups)
        inner = (
            split(inner, 1, count, groups, rank)
            .transpose(0, 1)
            .reshape(loaded.members, -1, groups, rank, self._places(input))
        )
        out = torch.einsum("mngrl,mgor->mngol", inner, split(a, 1, groups, -1))
        return out.reshape(input.shape[0], -1, *self._spatial(input))

    def _places(self, input: torch.Tensor) -> int:
        return prod(self._spatial(input))

    def _spatial(self, input: torch.Tensor) -> tuple[int, ...]:
        layer: Any = self
        sizes = zip(input.shape[2:], layer.kernel_size, layer.stride, layer.padding, layer.dilation, strict=True)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes)


class MembersConv1d(_MembersConv, nn.Conv1d):
    """nn.Conv1d for many members."""


class MembersConv2d(_MembersConv, nn.Conv2d):
    """nn.Conv2d for many members."""


class MembersTransposed(nn.Module):
    """transformers' Conv1D, a linear layer whose weight is (inputs, outputs), for many members."""

    thin: Thin
    weight: nn.Parameter
    bias: nn.Parameter

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows of the first axis belong to members in their order."""
        y = (x.reshape(-1, x.shape[-1]) @ self.weight + self.bias).reshape(*x.shape[:-1], -1)
        if self.thin.factors is not None:
            y = self.thin.add(x, y, *self.thin.factors)
        return self.thin.add_bias(y)


CLASSES: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: MembersLinear,
    nn.Embedding: MembersEmbedding,
    nn.Conv1d: MembersConv1d,
    nn.Conv2d: MembersConv2d,
}


class _MembersUnit:
    """Any other module: its parameters stacked for each member, evaluated by vmap."""

    unit: Unit

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Arguments whose first axis holds the batch are split by member; the others are shared."""
        return self.unit(args, kwargs)


class Unit:
    """A module as it was, with the noise of its moving parameters."""

    def __init__(self, plain: nn.Module, loaded: Loaded, moving: dict[str, Part]) -> None:
        self.plain = plain
        self.loaded = loaded
        self.moving = moving

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given, spec = tree_flatten((args, kwargs))
        batch = [isinstance(value, torch.Tensor) and self._is_batch(value) for value in given]
        parted = [split(v, 0, self.loaded.members, -1) if b else v for v, b in zip(given, batch, strict=True)]
        kept: list[Any] = []  # what vmap cannot return: the structure of the output, and the parts that are not tensors

        def forward(parameters: dict[str, torch.Tensor], *values: Any) -> tuple[torch.Tensor, ...]:
            inputs, keywords = tree_unflatten(list(values), spec)
            out, structure = tree_flatten(torch.func.functional_call(self.plain, parameters, inputs, keywords))
            kept[:] = structure, [TENSOR if isinstance(part, torch.Tensor) else part for part in out]
            return tuple(part for part in out if isinstance(part, torch.Tensor))

        dims = (0, *(0 if b else None for b in batch))
        outputs = iter(torch.vmap(forward, in_dims=dims, randomness="different")(self._stacked(), *parted))
        structure, others = kept
        whole = [next(outputs).flatten(0, 1) if other is TENSOR else other for other in others]
        return tree_unflatten(whole, structure)

    def _is_batch(self, value: torch.Tensor) -> bool:
        return value.ndim > 0 and value.shape[0] > 0 and value.shape[0] % max(self.loaded.rows, 1) == 0

    def _stacked(self) -> dict[str, torch.Tensor]:
        """(members, *shape) for each moving parameter."""
        stacked = {}
        for name, part in self.moving.items():
            stacked[name] = self.plain.get_parameter(name) + self.loaded.full(part)
        return stacked


def convert(module: nn.Module, parts: Parts, loaded: Loaded) -> dict[str, nn.Module]:
    """Let a module's layers evaluate the loaded members; returns the converted layers by name. Converts again as well."""
    moving, converted = parts.by_name(), {}
    for unit in parts.units:
        layer: Any = module.get_submodule(unit)
        if not isinstance(layer, _MembersUnit):
            inside = {n.removeprefix(unit + ".") if unit else n: p for n, p in moving.items() if _within(n, unit)}
            layer.__dict__["unit"] = Unit(copy.copy(layer), loaded, inside)
            layer.__class__ = type(f"Members{type(layer).__name__}", (_MembersUnit, type(layer)), {})
        layer.unit.loaded = loaded
        converted[unit] = layer
    for owner in dict.fromkeys(name.rpartition(".")[0] for name in moving):
        layer = module.get_submodule(owner)
        if any(_within(owner, unit) for unit in parts.units):
            continue
        if is_matrix_layer(layer):
            layer.__class__ = CLASSES.get(type(layer), MembersTransposed)
        layer.__dict__["thin"] = Thin(loaded, moving.get(_join(owner, "weight")), moving.get(_join(owner, "bias")))
        converted[owner] = layer
    return converted


def _join(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name


def _within(name: str, unit: str) -> bool:
    return not unit or name == unit or name.startswith(unit + ".")
