"""Any torch module as a policy network: one vmapped call for all rows, or a loop where torch has no batching rule.

A module is named `module:Class` and built as `Class(shape, outputs)`, with the shape of one observation and the number
of outputs that the action space needs; one that takes no arguments is built without. `forward(observation)` takes a batch
of one, (1, *shape), float32 (images: 0 to 1), and returns (1, outputs). A recurrent module has these two
methods:

    initial_state()                     the state an episode begins with: a tensor, or a tuple or dict of tensors
    forward(observation, state)         returns (output, next state)

torch gives a row the same bits only for one batch shape, so rows are computed in blocks of exactly 32, whatever the
number of slots; a self-test permutes the rows, and a module that fails it, or that vmap cannot batch, is run row by row.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from esker.errors import UsageError, named_line
from esker.noise.directions import Vector
from esker.policies.custom import Maker, offered
from esker.policies.network import Batch, Inputs, Shapes, size, split
from esker.system.imports import import_callable
from esker.system.torch_threads import one_torch_thread

BLOCK = 32
PROTOCOL = "a recurrent module needs initial_state() and forward(observation, state) -> (output, state)"


@dataclass(frozen=True)
class ModuleNetwork:
    """A torch module by its import path, or by the object that makes it if there is no such path."""

    path: str
    input_shape: tuple[int, ...]
    outputs: int
    images: bool
    shapes: Shapes = field(compare=False)
    recurrent: bool = False
    batched: bool = True
    maker: Maker | None = field(default=None, compare=False)

    @property
    def inputs(self) -> int:
        """How many numbers an observation has."""
        return int(np.prod(self.input_shape))

    @cached_property
    def dimension(self) -> int:
        """How many parameters it has."""
        return size(self.shapes.values())

    def initial(self, rng: np.random.Generator) -> Vector:
        """The class's own initial parameters, under a seed drawn from `rng`."""
        module = self.build(seed=int(rng.integers(2**62)))
        return torch.cat([p.detach().float().reshape(-1) for p in module.parameters()]).numpy()

    def build(self, seed: int) -> torch.nn.Module:
        """The module, made under its own seed and in evaluation mode."""
        return build(self.path, self.input_shape, self.outputs, seed, self.maker)

    def open(self, rows: int) -> ModuleRows:
        """Rows of parameters to be filled and run."""
        return ModuleRows(self, rows)


class ModuleRows:
    """A torch module opened in a worker; see `Rows`."""

    def __init__(self, network: ModuleNetwork, rows: int) -> None:
        self.network = network
        self.module = network.build(seed=0)
        count = -(-rows // BLOCK) * BLOCK
        self.parameters: Batch = np.zeros((count, network.dimension), dtype=np.float32)
        views = split(torch.from_numpy(self.parameters), network.shapes.values())
        self._tensors: dict[str, torch.Tensor] = dict(zip(network.shapes, views, strict=True))
        self._observations = torch.zeros(count, 1, *network.input_shape)
        self._state = None
        if network.recurrent:
            self._initial = self.module.initial_state()  # type: ignore[operator]
            self._state = pytree.tree_map(lambda t: t.detach().expand(count, *t.shape).clone(), self._initial)
        self._run: Callable[..., Any] = torch.vmap(self._one) if network.batched else self._each

    def forward(self, inputs: Inputs) -> Batch:
        """Outputs of the first n rows for n observations."""
        n = len(inputs)
        self._observations[:n, 0] = torch.from_numpy(np.ascontiguousarray(inputs))
        if self.network.images:
            self._observations[:n] *= 1 / 255
        used = range(0, n, BLOCK) if self.network.batched else range(n)
        step = BLOCK if self.network.batched else 1
        with _exactly():
            outputs = [self._block(slice(first, first + step)) for first in used]
        return torch.cat(outputs)[:n, 0].numpy()

    def _block(self, rows: slice) -> torch.Tensor:
        parameters = {name: tensor[rows] for name, tensor in self._tensors.items()}
        if self._state is None:
            return self._run(parameters, self._observations[rows])
        state = pytree.tree_map(lambda t: t[rows], self._state)
        output, after = self._run(parameters, self._observations[rows], state)
        pytree.tree_map(lambda kept, new: kept[rows].copy_(new), self._state, after)
        return output

    def _one(self, parameters: dict[str, torch.Tensor], *inputs: Any) -> Any:
        return torch.func.functional_call(self.module, parameters, inputs)

    def _each(self, parameters: dict[str, torch.Tensor], *inputs: Any) -> Any:
        """One row alone, shaped as a batch of rows."""
        first = pytree.tree_map(lambda t: t[0], (parameters, inputs))
        return pytree.tree_map(lambda t: t.unsqueeze(0), self._one(first[0], *first[1]))

    def start(self, row: int) -> None:
        """Give the row the state that an episode begins with."""
        if self._state is not None:
            pytree.tree_map(lambda kept, initial: kept[row].copy_(initial), self._state, self._initial)

    def move(self, source: int, target: int) -> None:
        """Copy one row's parameters and state over another's."""
        self.parameters[target] = self.parameters[source]
        if self._state is not None:
            pytree.tree_map(lambda kept: kept[target].copy_(kept[source]), self._state)


def module_network(path: str, shape: tuple[int, ...], outputs: int, images: bool) -> ModuleNetwork:
    """Build and check a module. One that cannot be imported, does not fit or breaks the protocol raises UsageError."""
    maker = offered(path)
    module = build(path, shape, outputs, 0, maker)
    recurrent = hasattr(module, "initial_state")
    _probe(module, path, shape, outputs, recurrent)
    shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
    if not shapes:
        raise UsageError(f"network {path!r} has no parameters to learn")
    network = ModuleNetwork(path, shape, outputs, images, shapes, recurrent, maker=maker)
    return network if batches(network) else replace(network, batched=False)


def build(path: str, shape: tuple[int, ...], outputs: int, seed: int, maker: Maker | None = None) -> torch.nn.Module:
    """The module, made under its own seed and in evaluation mode; a maker that takes no arguments gets none."""
    kind = maker or import_callable(path, "network")
    arguments = (shape, outputs) if _takes_arguments(kind) else ()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            module = kind(*arguments)
        except Exception as error:
            text = named_line(error)
            given = ", ".join(map(str, arguments))
            meaning = ", the observation's shape and the number of outputs" if arguments else ""
            raise UsageError(f"network {path!r} cannot be made as Class({given}){meaning}: {text}") from error
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"network {path!r} made a {type(module).__name__}; expected a torch.nn.Module")
    return module.eval().requires_grad_(False)


def _takes_arguments(kind: Maker) -> bool:
    try:
        return bool(inspect.signature(kind).parameters)
    except (TypeError, ValueError):  # some callables have no signature
        return True


def batches(network: ModuleNetwork) -> bool:
    """Whether a row computed in a block has the same bits in any place, so that rows may share blocks."""
    rng = np.random.default_rng(0)
    rows = ModuleRows(network, BLOCK)
    rows.parameters[:] = network.initial(rng) + 0.1 * rng.standard_normal(rows.parameters.shape, dtype=np.float32)
    inputs = rng.standard_normal((BLOCK, *network.input_shape)).astype(np.float32)
    order = rng.permutation(BLOCK)
    try:
        first = [rows.forward(inputs).copy() for _ in range(3)]  # a few steps, so that recurrent state counts too
        rows.parameters[:] = rows.parameters[order]
        for row in range(BLOCK):
            rows.start(row)
        second = [rows.forward(inputs[order]).copy() for _ in range(3)]
    except Exception:  # whatever vmap does not support
        return False
    return all(np.array_equal(a[order], b) for a, b in zip(first, second, strict=True))


def _probe(module: torch.nn.Module, path: str, shape: tuple[int, ...], outputs: int, recurrent: bool) -> None:
    """One step, to check that input, output and state follow the protocol."""
    observation = torch.zeros(1, *shape)
    try:
        state = module.initial_state() if recurrent else None  # type: ignore[operator]
        result = module(observation, state) if recurrent else module(observation)
    except Exception as error:
        text = named_line(error)
        wants_state = not recurrent and len(inspect.signature(module.forward).parameters) > 1
        hint = f"; {PROTOCOL}" if recurrent or wants_state else ""
        raise UsageError(f"network {path!r} fails on an observation of shape {(1, *shape)}: {text}{hint}") from error
    if isinstance(result, tuple) != recurrent or (recurrent and len(result) != 2):
        raise UsageError(
            f"network {path!r} returns a {type(result).__name__}; {PROTOCOL}, any other returns only the output"
        )
    output = result[0] if recurrent else result
    if not isinstance(output, torch.Tensor) or tuple(output.shape) != (1, outputs):
        found = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        raise UsageError(f"network {path!r} returns {found}; the action space needs outputs of shape {(1, outputs)}")
    if recurrent and [t.shape for t in pytree.tree_leaves(result[1])] != [t.shape for t in pytree.tree_leaves(state)]:
        raise UsageError(f"network {path!r}: forward returns a state of another shape than initial_state(); {PROTOCOL}")


@contextlib.contextmanager
def _exactly() -> Iterator[None]:
    """No gradients and one thread: with more threads a product may be split differently, which changes its bits."""
    with one_torch_thread(), torch.no_grad():
        yield
