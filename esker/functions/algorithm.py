"""Evolution of any model by any reward as an algorithm: from a problem to task, noise table and state."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch

from esker.algorithms.algorithm import About, Algorithm, Workers
from esker.config.evolution import EVOLUTION_RESUMABLE, EvolutionConfig
from esker.errors import UsageError, first_line
from esker.functions.batches import BatchTask
from esker.functions.engines import open_engine
from esker.functions.forms import by_workers
from esker.functions.lowrank.batches import LowRankBatches
from esker.functions.lowrank.parts import parts_of
from esker.functions.lowrank.state import LowRankEvolution
from esker.functions.parameters import FlatParameters
from esker.functions.problem import Problem, again, machine, remedy, start_of, still
from esker.functions.reward import Function, call_of
from esker.functions.state import FunctionEvolution
from esker.functions.task import Functions, resolve_device
from esker.noise.choice import noise_from, open_table
from esker.strategies.registry import build_strategy, find_strategy


def start(config: EvolutionConfig, problem: Problem, about: About, new: bool = True) -> FunctionEvolution:
    """The state before the first generation: the model's present parameters. A model that does not fit raises UsageError.

    A resumed run (`new` is False) is compared with how it began.
    """
    flat = problem.flat(config)
    task = task_of(config, problem, flat)
    notices = [] if new else _compare(config, flat, task, about)
    state = _state(config, flat, task)
    state.server, state.began_here = problem.server, new or about.get("start") == start_of(flat)
    state.notices = notices + list(getattr(getattr(task, "parts", None), "notices", ()))
    return state


def begin_about(config: EvolutionConfig, problem: Problem) -> About:
    """What the folder of a new run must remember."""
    flat = problem.flat(config)
    return problem.about(flat, resolve_device(device_of(config, flat)), config.noise == "low-rank")


def task_of(config: EvolutionConfig, problem: Problem, flat: FlatParameters) -> Functions | BatchTask:
    """The task that evaluates a member."""
    if problem.reward_batch is not None:
        return _batch_task(config, flat, problem.reward_batch)
    return Functions(
        subject=flat.subject,
        layout=flat.layout,
        call=call_of(problem.reward or by_workers, problem.test_kwargs, gradients=config.gradients),
        seed=config.seed,
        device=device_of(config, flat),
        antithetic=config.antithetic,
        evaluations=config.evaluations_per_member,
        center_evaluations=config.center_evaluations,
        common_seeds=config.common_seeds,
    )


def _batch_task(config: EvolutionConfig, flat: FlatParameters, reward_batch: Function) -> BatchTask:
    task = BatchTask(
        subject=flat.subject,
        layout=flat.layout,
        call=call_of(reward_batch, {}, "reward_batch", config.gradients),
        seed=config.seed,
        device=device_of(config, flat),
        antithetic=config.antithetic,
        members_per_batch=config.members_per_batch,
        failures_stop=config.on_error == "stop",
    )
    if config.noise != "low-rank":
        return task
    assert isinstance(flat.subject, torch.nn.Module)
    parts, dtype = parts_of(flat.subject, flat, config.rank), getattr(torch, config.dtype)
    return LowRankBatches(**vars(task), parts=parts, dtype=dtype, int8=config.int8)


def device_of(config: EvolutionConfig, flat: FlatParameters) -> str:
    """Where members are evaluated. A device that does not exist raises UsageError."""
    device = config.device or str(flat.tensors[0].device)
    try:
        resolve_device(device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"device {device!r} cannot be used here ({first_line(error)}); expected cpu, cuda, cuda:1, …"
        ) from None
    return device


def _state(config: EvolutionConfig, flat: FlatParameters, task: Functions | BatchTask) -> FunctionEvolution:
    center = flat.read()
    if not np.isfinite(center).all():
        raise UsageError("the model's parameters hold NaN or infinity; expected finite numbers")
    if isinstance(task, LowRankBatches):
        return LowRankEvolution(config, center, task, flat)
    table = open_table(config.noise, config.seed, config.table_size, flat.dimension)
    noise = noise_from(table, config.seed, len(center))
    strategy = build_strategy(find_strategy(config.strategy), center, {**vars(config), "noise": noise})
    state = FunctionEvolution(config, strategy, task, flat, table)
    if table is not None:
        weakref.finalize(state, table.close)
    return state


def _compare(config: EvolutionConfig, flat: FlatParameters, task: Functions | BatchTask, about: About) -> list[str]:
    """Refuse a model, form of reward or machine that differs from the run's, unless `inexact` allows it."""
    if about.get("parameters") != flat.describe():
        raise UsageError("the model's moving parameters are not those of the run")
    if about.get("batched") is not isinstance(task, BatchTask):
        raise UsageError(f"the run was made with {'reward_batch' if about.get('batched') else 'reward'}; give that")
    differences = []
    if about.get("still") not in (None, still(flat)):
        differences.append("the model's frozen parameters or buffers are not those that the run began with")
    if about.get("fingerprint") != machine(resolve_device(task.device), isinstance(task, LowRankBatches)):
        differences.append("this machine computes other bits than the one the run began on")
    if differences and not config.inexact:
        raise UsageError(f"{', and '.join(differences)}; to continue anyway, add inexact=True")
    return [f"{text}: continuing, not bit-identically" for text in differences]


def _no_environment(config: Any) -> dict[str, Any]:
    return {}


FUNCTION = Algorithm(
    "function",
    EvolutionConfig,
    start,
    policy_task=None,
    open=open_engine,
    workers=lambda config: Workers(config.workers),
    environment=_no_environment,
    find=again,
    resumable=EVOLUTION_RESUMABLE,
    remedy=remedy,
)
