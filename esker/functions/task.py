"""User functions as a task: a member is evaluated by calling a reward on a model that holds its parameters.

Every evaluation starts from the same state: parameters rewritten, buffers and modes restored, random generators seeded by
address. So a fitness does not depend on which worker computed it, nor on what that worker computed before.
"""

from __future__ import annotations

import contextlib
import copy
import math
import random
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from esker.errors import named_line
from esker.functions.parameters import FlatParameters, ParameterLayout, Subject
from esker.functions.reward import BadReward, Call, label, number
from esker.noise.address import Purpose, episode_seed
from esker.noise.choice import noise_from
from esker.noise.directions import Noise, Vector
from esker.noise.population import Population, direction_of
from esker.noise.table import NoiseTable
from esker.tasks.task import Board, Give, Job, Result, Take, address_of, name_of

RESERVE = 8  # members a worker may hold in reserve, so that it never waits for the next one


@dataclass(frozen=True)
class Functions:
    """Members are evaluated by a reward. Items 0..k-1 are the centre's evaluations, k + m·E + e is number e of member m."""

    subject: Subject
    layout: ParameterLayout
    call: Call
    seed: int
    device: str
    antithetic: bool = True
    evaluations: int = 1
    center_evaluations: int = 1
    common_seeds: bool = True
    seeds_generators: bool = True  # threads share the process's generators, so there only `seed=` is exact
    slots: int = RESERVE

    def address(self, item: int) -> tuple[int | None, int]:
        """The member (None: the centre) and which of its evaluations an item is."""
        return address_of(item, self.center_evaluations, self.evaluations)

    def evaluation_seed(self, generation: int, item: int) -> int:
        """The seed of an evaluation; the two members of a pair share it unless `common_seeds` is off."""
        member, evaluation = self.address(item)
        if member is None:
            return episode_seed(self.seed, Purpose.FUNCTION, generation, 0, evaluation)
        who = direction_of(member, self.antithetic)[0] if self.common_seeds else member
        return episode_seed(self.seed, Purpose.FUNCTION, generation, 1 + who, evaluation)

    def describe(self, generation: int, item: int) -> str:
        """Reward, generation, member and seed of an item."""
        member, evaluation = self.address(item)
        seed, where = self.evaluation_seed(generation, item), f"generation {generation}, {name_of(member)}"
        return f"{label(self.call.function)}, {where}, evaluation {evaluation}, seed {seed}"

    def noise(self, table: NoiseTable | None, dimension: int | None = None) -> Noise:
        """The directions that members explore; `dimension` saves counting the parameters."""
        dimension = dimension or FlatParameters(self.subject, self.layout).dimension
        return noise_from(table, self.seed, dimension)

    def for_thread(self) -> Functions:
        """The same task with its own copy of the model, for a thread that shares its process with others."""
        subject = copy.deepcopy(self.subject)
        call = self.call
        if getattr(call.function, "__self__", None) is self.subject:  # a method of the model goes with it
            call = replace(call, function=getattr(subject, call.function.__name__))
        return replace(self, subject=subject, call=call, seeds_generators=False)

    def open(self, table: NoiseTable | None, board: Board) -> Calls:
        """Put the model on its device, ready to be called."""
        return Calls(self, table, board)


class Calls:
    """The evaluations of one worker, one after the other."""

    def __init__(self, task: Functions, table: NoiseTable | None, board: Board) -> None:
        self.task = task
        self.board = board
        self.caller = Caller(task.subject, task.layout, task.call, task.device)
        self.noise = task.noise(table, self.caller.flat.dimension)
        self.row: Vector = np.empty(self.caller.flat.dimension, dtype=np.float32)

    def evaluate(self, job: Job, take: Take, give: Give) -> int:
        """Evaluate items until `take` ends it; the next item is asked for before the present one is begun."""
        population = job.population.bound(self.noise)
        with generators_kept(self.task.seeds_generators):
            present = take(1, 0)
            while present:
                following = take(1, 1)
                if following is None:
                    return 1
                give([self._result(job, population, present[0])])
                present = following or take(1, 0)
        return 0

    def _result(self, job: Job, population: Population, item: int) -> Result:
        task, board = self.task, self.board
        board[0] += 1
        board[1] = item
        member, _ = task.address(item)
        if member is None:
            self.row[:] = job.center
        else:
            population.write(member, self.row)
        seed = task.evaluation_seed(job.generation, item)
        try:
            if task.seeds_generators:
                seed_generators(seed)
            fitness = number(self.caller(self.row, seed), self.caller.device)
        except BadReward as error:
            return Result(item, math.nan, math.nan, 1, None, str(error))
        except (Exception, SystemExit) as error:  # only this evaluation fails, not the worker
            return Result(item, math.nan, math.nan, 1, None, named_line(error), traceback.format_exc())
        return Result(item, fitness, fitness, 1)

    def close(self) -> None:
        """Restore the model's buffers and modes; the caller sets its parameters."""
        self.caller.restore()


class Caller:
    """A model and its reward; every call starts from the same state."""

    def __init__(self, subject: Subject, layout: ParameterLayout, call: Call, device: str) -> None:
        self.device = resolve_device(device)
        self.subject = on_device(subject, self.device)
        self.flat = FlatParameters(self.subject, layout)
        self.call = call
        self._origin = Origin(self.subject) if isinstance(self.subject, nn.Module) else None

    def __call__(self, row: Vector, seed: int, options: Mapping[str, Any] | None = None) -> Any:
        """The reward of the model with these parameters."""
        if self._origin is None:
            weights = self._weights(row)
            return self.call(weights, lambda: weights, seed, options or {})
        self.flat.write(row)
        self._origin.restore()
        return self.call(self.subject, lambda: self._weights(row), seed, options or {})

    def restore(self) -> None:
        """Restore the model's original buffers and modes."""
        if self._origin is not None:
            self._origin.restore()

    def _weights(self, row: Vector) -> Any:
        """New tensors, since a reward may keep them: one, or a list with one for each that was given."""
        return self.flat.in_place_of(torch.from_numpy(row.copy()).to(self.device))


class Origin:
    """The buffers (batch-norm statistics and the like) and train/eval modes that a module came with."""

    def __init__(self, module: nn.Module) -> None:
        self.modes = [(part, part.training) for part in module.modules()]
        self.buffers = [
            (part, name, value.detach().clone())
            for part in module.modules()
            for name, value in part.named_buffers(recurse=False)
        ]

    def restore(self) -> None:
        """Restore them."""
        for part, mode in self.modes:
            if part.training is not mode:  # a module's attributes are slow to set
                part.training = mode
        if not self.buffers:
            return
        with torch.no_grad():
            for part, name, value in self.buffers:
                now = part._buffers.get(name)
                if now is not None and now.shape == value.shape and now.dtype == value.dtype and now.device == value.device:
                    now.copy_(value)
                else:
                    part._buffers[name] = value.clone()


def resolve_device(device: str) -> torch.device:
    """A device with its number, as tensors name it."""
    chosen = torch.device(device)
    return torch.empty(0, device=chosen).device


def on_device(subject: Subject, device: torch.device) -> Subject:
    """The subject itself where it is on the device already, otherwise a copy there."""
    if isinstance(subject, nn.Module):
        tensors = [*subject.parameters(), *subject.buffers()]
        return subject if all(t.device == device for t in tensors) else copy.deepcopy(subject).to(device)
    if isinstance(subject, torch.Tensor):
        return subject.to(device)
    return [tensor.to(device) for tensor in subject]


def seed_generators(seed: int) -> None:
    """Seed the global random generators, which rewards may use."""
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed formats a traceback while CUDA is not in use: 400 µs
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


@contextlib.contextmanager
def generators_kept(wanted: bool) -> Iterator[None]:
    """Restore the caller's random generators on exit."""
    if not wanted:
        yield
        return
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
