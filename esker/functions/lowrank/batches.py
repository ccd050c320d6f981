"""Evaluates low-rank generations on one device: the module is converted once, then members are loaded into it in chunks."""

from __future__ import annotations

import contextlib
import copy
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from esker.errors import RunError, UsageError, first_line, named_line
from esker.functions.batches import Batch, BatchTask, finite
from esker.functions.lowrank.check import check_members
from esker.functions.lowrank.int8 import round_weights, write
from esker.functions.lowrank.layers import convert
from esker.functions.lowrank.loaded import Loaded
from esker.functions.lowrank.members import LowRankMembers
from esker.functions.lowrank.parts import Parts, training_statistics
from esker.functions.lowrank.strategy import LowRankES
from esker.functions.parameters import FlatParameters
from esker.functions.reward import BadReward, label, numbers
from esker.functions.task import Origin, generators_kept, resolve_device, seed_generators
from esker.noise.address import Purpose, episode_seed

CPU_MEMBERS = 256  # members of a chunk by default on a CPU; elsewhere all of them, or what fits


def _silent(text: str) -> None:
    """The default: ignore notices."""


@dataclass(frozen=True)
class LowRankBatches(BatchTask):
    """What `reward_batch` is called on where noise is low-rank."""

    parts: Parts
    dtype: torch.dtype
    int8: bool = False
    note: Callable[[str], None] = field(default=_silent)


@dataclass(frozen=True)
class LowRankJob:
    """A generation: its centre, scale and noise are the strategy's, on the device already."""

    strategy: LowRankES

    @property
    def generation(self) -> int:
        """The generation to evaluate."""
        return self.strategy.generation


class LowRankEngine:
    """Evaluates whole generations inside this process; every chunk has the same shape, padded with the centre."""

    def __init__(self, task: LowRankBatches) -> None:
        assert isinstance(task.subject, nn.Module)
        self.task = task
        self.device = resolve_device(task.device)
        self.module = evaluation_copy(task.subject, self.device, task.dtype)
        mixing = training_statistics(self.module)
        if mixing is not None:
            raise UsageError(f"layer {mixing!r} takes statistics of its batch, which mixes members; call model.eval() first")
        self._origin = Origin(self.module)  # of the module as it came: the scales of int8 weights move with the centre
        if task.int8:
            round_weights(self.module, task.parts)
        self.flat = FlatParameters(self.module, task.layout)
        self.mirror = 2 if task.antithetic else 1
        self._members: LowRankMembers | None = None
        self._size = task.members_per_batch or (CPU_MEMBERS if self.device.type == "cpu" else None)
        self._checked = False

    def evaluate(self, job: LowRankJob, plan: Batch) -> None:
        """Fill the plan. A failure raises RunError, or becomes NaN where failed members rank last."""
        self.write(job.strategy.center)
        start, count = 0, len(plan.fitness) // self.mirror
        while start < count:
            try:
                start += self.chunk(job.strategy, start, plan)
            except torch.OutOfMemoryError as error:
                self._halve(error, self._spare(plan))

    def chunk(self, strategy: LowRankES, start: int, plan: Batch) -> int:
        """Evaluate the directions from `start` on; the centre's evaluations follow the members of the first chunk."""
        with generators_kept(True), no_fast_path():
            return self._chunk(strategy, start, plan)

    def size(self, directions: int) -> int:
        """How many directions a chunk has, in chunks as equal as can be."""
        most = max(1, directions if self._size is None else self._size // self.mirror)
        return -(-directions // -(-directions // min(most, directions)))

    def _chunk(self, strategy: LowRankES, start: int, plan: Batch) -> int:
        count, spare = len(plan.fitness) // self.mirror, self._spare(plan)
        members = self._loaded(count, spare)
        chosen = range(start, min(start + members.loaded.directions - spare, count))
        members.generation, members.start = strategy.generation, start
        signs = torch.tensor([1.0, -1.0][: self.mirror], device=self.device)
        members.loaded.load(strategy.noise(chosen), (strategy.sigma * signs).expand(len(chosen), -1))
        for evaluation in range(plan.fitness.shape[1]):
            values = self._call(members, strategy.generation, chosen, evaluation)
            first, real = start * self.mirror, len(chosen) * self.mirror
            plan.fitness[first : first + real, evaluation] = values[:real]
            if not start and not evaluation:
                plan.center[:] = values[len(values) - spare * self.mirror :][: len(plan.center)]
        return len(chosen)

    def _spare(self, plan: Batch) -> int:
        """The directions of a chunk that the centre takes."""
        return -(-len(plan.center) // self.mirror)

    def _loaded(self, directions: int, spare: int) -> LowRankMembers:
        """The converted module with room for one chunk and the centre."""
        size = self.size(directions) + spare
        if self._members is None or self._members.loaded.directions != size:
            loaded = Loaded(self.task.parts, size, self.mirror, self.task.dtype, self.device)
            layers = convert(self.module, self.task.parts, loaded)
            self._members = LowRankMembers(self.module, loaded, layers)
        return self._members

    def _call(self, members: LowRankMembers, generation: int, chosen: range, evaluation: int) -> NDArray[np.float64]:
        seed = episode_seed(self.task.seed, Purpose.FUNCTION, generation, 1 + chosen.start, evaluation)
        seed_generators(seed)
        self._origin.restore()
        first, last = chosen.start * self.mirror, chosen.stop * self.mirror - 1
        where = f"{label(self.task.call.function)}, generation {generation}, members {first} to {last}, seed {seed}"
        members.keep_call = not self._checked
        try:
            given = self.task.call(members, lambda: members, seed, {})
            values = numbers(given, len(members), self.device).numpy()
        except BadReward as error:
            raise RunError(f"{where}: {error}") from None
        except (torch.OutOfMemoryError, UsageError):
            raise
        except RunError as error:
            raise RunError(f"{where}: {error}") from None
        except (Exception, SystemExit) as error:
            raise RunError(f"{where}: {named_line(error)}\n{traceback.format_exc()}".rstrip()) from error
        if not self._checked:
            self._checked = True
            check_members(self.task.subject, self.flat, members, self.task.note)
        return finite(values, where, self.task.failures_stop)

    def write(self, center: torch.Tensor) -> None:
        """Copy the centre into the evaluated module, with a cast."""
        parts = [self.task.parts.parts[place] for place in self.flat.layout.places]
        with torch.no_grad():
            write(self.flat.tensors, [center[part.at].view(part.shape) for part in parts])

    def _halve(self, error: torch.OutOfMemoryError, spare: int) -> None:
        """Make chunks smaller, or give up if a chunk is one pair already."""
        assert self._members is not None
        now = self._members.loaded.directions
        if now <= 1 + spare:
            raise RunError(f"the device has no memory for a single pair of members: {first_line(error)}") from error
        self._size = max(1, (now - spare) // 2) * self.mirror
        self._members = None
        torch.cuda.empty_cache()
        self.task.note(f"out of memory on {self.device}: continuing with {self._size} members at a time (members_per_batch)")

    def close(self) -> None:
        """Nothing to restore: the converted module is a copy."""


def evaluation_copy(module: nn.Module, device: torch.device, dtype: torch.dtype) -> nn.Module:
    """A copy on the device with parameters of another type; buffers keep theirs, since some need their precision."""
    copied = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.data = parameter.data.to(device, dtype)
            parameter.requires_grad_(False)
    return copied.to(device)


@contextlib.contextmanager
def no_fast_path() -> Iterator[None]:
    """torch's fused attention layers read weights without calling the layers that hold them."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
