"""A reward that evaluates many members at once, on one device: for evaluations that vectorise."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from esker.errors import RunError, named_line
from esker.functions.parameters import FlatParameters, ParameterLayout, Subject
from esker.functions.reward import BadReward, Call, label, numbers
from esker.functions.task import Origin, generators_kept, on_device, resolve_device, seed_generators
from esker.noise.address import Purpose, episode_seed
from esker.noise.choice import noise_from
from esker.noise.table import NoiseTable
from esker.tasks.task import LARGEST, Job, is_fitness

# Parameters per batch by default. On a CPU few enough for its cache, and enough that torch's threads rarely synchronise: on
# a busy machine, every synchronisation may wait for a time slice.
CPU_NUMBERS = 1 << 22
ACCELERATOR_NUMBERS = 1 << 26  # elsewhere a batch that keeps the device busy


class Members(dict[str, torch.Tensor]):
    """A module's members: stacked parameters by name, (n, *shape); called, every member's outputs for the same inputs."""

    def __init__(self, module: nn.Module, parameters: dict[str, torch.Tensor]) -> None:
        super().__init__(parameters)
        self._module = module

    def __call__(self, *inputs: Any) -> Any:
        """(n, …) outputs, by `torch.vmap` over the module; what the module draws differs between members."""
        return self._forward(inputs, None)

    def each(self, *inputs: torch.Tensor) -> Any:
        """(n, …) outputs where every member has its own inputs: the first dimension counts members."""
        return self._forward(inputs, 0)

    def _forward(self, inputs: tuple[Any, ...], dimension: int | None) -> Any:
        def forward(parameters: dict[str, torch.Tensor], inputs: tuple[Any, ...]) -> Any:
            return torch.func.functional_call(self._module, parameters, inputs)

        return torch.vmap(forward, in_dims=(0, dimension), randomness="different")(dict(self), inputs)


@dataclass
class Batch:
    """The plan of a generation that is evaluated in batches: fitness by evaluation, filled in place."""

    center: NDArray[np.float64]
    fitness: NDArray[np.float64]  # (members, evaluations)


@dataclass(frozen=True)
class BatchTask:
    """What `reward_batch` is called on; rows are the centre's evaluations first, then member by member."""

    subject: Subject
    layout: ParameterLayout
    call: Call
    seed: int
    device: str
    antithetic: bool
    members_per_batch: int | None
    failures_stop: bool  # otherwise a number that is not finite marks a member that failed


class BatchEngine:
    """Evaluates whole generations inside this process, `members_per_batch` at a time."""

    def __init__(self, task: BatchTask, table: NoiseTable | None) -> None:
        self.task = task
        self.device = resolve_device(task.device)
        self.subject = on_device(task.subject, self.device)
        self.flat = FlatParameters(self.subject, task.layout)
        self._origin = Origin(self.subject) if isinstance(self.subject, nn.Module) else None
        dimension = self.flat.dimension
        self.noise = noise_from(table, task.seed, dimension)
        usual = CPU_NUMBERS if self.device.type == "cpu" else ACCELERATOR_NUMBERS
        self.size = task.members_per_batch or max(32, usual // dimension)

    def evaluate(self, job: Job, plan: Batch) -> None:
        """Fill the plan. A failure raises RunError, or becomes NaN where failed members rank last."""
        with generators_kept(True):
            plan.center[:] = self._center(job, len(plan.center))
            members, evaluations = plan.fitness.shape
            step = max(1, self.size // evaluations)
            step += step % 2 if self.task.antithetic else 0  # whole pairs, so that a direction is fetched once
            for start in range(0, members, step):
                chosen = range(start, min(start + step, members))
                plan.fitness[start : chosen.stop] = self._members(job, chosen, evaluations)

    def _center(self, job: Job, count: int) -> NDArray[np.float64]:
        rows = torch.from_numpy(job.center).expand(count, -1)
        return self._call(rows, job.generation, 0, "the centre")

    def _members(self, job: Job, chosen: range, evaluations: int) -> NDArray[np.float64]:
        population = job.population.bound(self.noise).select(chosen)
        rows = population.parameters().repeat_interleave(evaluations, 0) if evaluations > 1 else population.parameters()
        where = f"members {chosen.start} to {chosen.stop - 1}"
        return self._call(rows, job.generation, 1 + chosen.start, where).reshape(len(chosen), evaluations)

    def _call(self, rows: torch.Tensor, generation: int, address: int, where: str) -> NDArray[np.float64]:
        seed = episode_seed(self.task.seed, Purpose.FUNCTION, generation, address)
        seed_generators(seed)
        if self._origin is not None:
            self._origin.restore()
        where = f"{label(self.task.call.function)}, generation {generation}, {where}, seed {seed}"
        members = self._argument(rows.to(self.device))
        try:
            values = numbers(self.task.call(members, lambda: members, seed, {}), len(rows), self.device).numpy()
        except BadReward as error:
            raise RunError(f"{where}: {error}") from None
        except (Exception, SystemExit) as error:
            raise RunError(f"{where}: {named_line(error)}\n{traceback.format_exc()}".rstrip()) from error
        return finite(values, where, self.task.failures_stop)

    def _argument(self, rows: torch.Tensor) -> Any:
        if isinstance(self.subject, nn.Module):
            return Members(self.subject, dict(zip(self.flat.layout.names, self.flat.stacked(rows), strict=True)))
        return self.flat.in_place_of(rows)

    def close(self) -> None:
        """Restore the model's buffers and modes."""
        if self._origin is not None:
            self._origin.restore()


def finite(values: NDArray[np.float64], where: str, failures_stop: bool) -> NDArray[np.float64]:
    """A batch's fitness with NaN for members that failed; where failures stop a run they raise RunError."""
    right = is_fitness(values)
    wrong = np.flatnonzero(~right)
    if len(wrong) and failures_stop:
        first = int(wrong[0])
        raise RunError(
            f"{where}: reward_batch returned {values[first]} at place {first}; expected finite numbers below {LARGEST:g}"
        )
    return np.where(right, values, np.nan)
