"""From a model and a reward to the parts of an evolution: task, noise table, state, engine, folder."""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from esker.config.evolution import EvolutionConfig
from esker.engines.engine import InlineEngine
from esker.engines.local import LocalEngine
from esker.engines.threads import ThreadEngine
from esker.errors import RunError, UsageError, first_line
from esker.functions.batches import BatchEngine, BatchTask
from esker.functions.lowrank.batches import LowRankBatches, LowRankEngine
from esker.functions.lowrank.parts import kept_layout, parts_of
from esker.functions.lowrank.state import LowRankEvolution
from esker.functions.parameters import Filter, FlatParameters, Subject, layout_of
from esker.functions.pickling import check_sendable
from esker.functions.reward import Function, call_of
from esker.functions.state import FunctionEvolution
from esker.functions.task import Functions, resolve_device
from esker.noise.choice import noise_from
from esker.noise.fingerprint import fingerprint
from esker.noise.table import NoiseTable
from esker.runs.folder import RunFolder
from esker.runs.recovery import replay_facts
from esker.strategies.registry import build_strategy, find_strategy
from esker.system.torch_threads import one_torch_thread

SERVED_ELSEWHERE = ("workers", "executor", "timeout", "engine", "address")  # of no use to a server's workers
LOCAL_WORKERS = 4  # by default
# Options that a batched reward has no use for.
ONE_BY_ONE = ("workers", "executor", "timeout", "common_seeds", "engine", "address")


def check_form(reward: Function | None, reward_batch: Function | None, options: Mapping[str, Any], tests: bool) -> None:
    """Refuse options that the form of the reward has no use for. Raises UsageError."""
    if (reward is None) == (reward_batch is None):
        raise UsageError("expected either reward or reward_batch: reward(model) -> number, or reward_batch(members)")
    if "generations" in options:
        raise UsageError("generations is not an option here; give the number to run(iterations)")
    if reward_batch is None and options.get("members_per_batch") is not None:
        raise UsageError("members_per_batch is for reward_batch; reward(model) is given one member at a time")
    if reward_batch is None and options.get("noise") == "low-rank":
        raise UsageError("noise='low-rank' evaluates many members at once; give reward_batch(members) instead of reward")
    if reward_batch is not None:
        for name in [*(name for name in ONE_BY_ONE if name in options), *(["test_kwargs"] if tests else [])]:
            raise UsageError(f"{name} is for reward(model); reward_batch is called in this process, in batches")


def by_workers(model: Any) -> float:
    """Stands for a reward that only the workers of a server know."""
    raise RunError("members of this run are evaluated by the workers of its server")


def check_served(reward: Any, reward_batch: Any, options: Mapping[str, Any], tests: bool) -> dict[str, Any]:
    """The options of a run whose members the workers of a server evaluate. What does not fit raises UsageError."""
    given = [name for name, value in (("reward", reward), ("reward_batch", reward_batch)) if value is not None]
    given += [*(["test_kwargs"] if tests else []), *(name for name in SERVED_ELSEWHERE if name in options)]
    if given:
        raise UsageError(f"{given[0]} has no effect with server, whose workers choose how to evaluate; leave it out")
    if options.get("noise", "counter") != "counter":
        raise UsageError(f"noise is {options['noise']!r}, and workers compute their members; use noise='counter'")
    return {**options, "noise": "counter"}


def flat_of(config: EvolutionConfig, model: Subject, params: Filter | None) -> FlatParameters:
    """What moves, as one vector."""
    layout = layout_of(model, params)
    if config.noise != "low-rank":
        return FlatParameters(model, layout)
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"noise='low-rank' perturbs the layers of a module, and model is a {type(model).__name__}")
    return FlatParameters(model, kept_layout(model, layout, config.vectors))


def function_task(
    config: EvolutionConfig, flat: FlatParameters, reward: Function, test_kwargs: Mapping[str, Any]
) -> Functions:
    """The task of a reward that is given one member at a time."""
    return Functions(
        subject=flat.subject,
        layout=flat.layout,
        call=call_of(reward, test_kwargs),
        seed=config.seed,
        device=device_of(config, flat),
        antithetic=config.antithetic,
        evaluations=config.evaluations_per_member,
        center_evaluations=config.center_evaluations,
        common_seeds=config.common_seeds,
    )


def batch_task(
    config: EvolutionConfig, flat: FlatParameters, reward_batch: Function, note: Callable[[str], None]
) -> BatchTask:
    """The task of a reward that is given many members at once."""
    task = BatchTask(
        subject=flat.subject,
        layout=flat.layout,
        call=call_of(reward_batch, {}, "reward_batch"),
        seed=config.seed,
        device=device_of(config, flat),
        antithetic=config.antithetic,
        members_per_batch=config.members_per_batch,
        failures_stop=config.on_error == "stop",
    )
    if config.noise != "low-rank":
        return task
    assert isinstance(flat.subject, torch.nn.Module)
    parts = parts_of(flat.subject, flat, config.rank)
    for notice in parts.notices:
        note(notice)
    return LowRankBatches(**vars(task), parts=parts, dtype=getattr(torch, config.dtype), note=note)


def device_of(config: EvolutionConfig, flat: FlatParameters) -> str:
    """Where members are evaluated. A device that is not there raises UsageError."""
    device = config.device or str(flat.tensors[0].device)
    try:
        resolve_device(device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"device {device!r} cannot be used here ({first_line(error)}); expected cpu, cuda, cuda:1, …"
        ) from None
    return device


def initial_state(
    config: EvolutionConfig, flat: FlatParameters, task: Functions | BatchTask, table: NoiseTable | None
) -> FunctionEvolution:
    """The state before the first iteration: the model's parameters as they are."""
    start = flat.read()
    if not np.isfinite(start).all():
        raise UsageError("the model's parameters hold NaN or infinity; expected finite numbers")
    if isinstance(task, LowRankBatches):
        return LowRankEvolution(config, start, task)
    noise = noise_from(table, config.seed, len(start))
    strategy = build_strategy(find_strategy(config.strategy), start, {**vars(config), "noise": noise})
    return FunctionEvolution(config, strategy, task.describe if isinstance(task, Functions) else None)


@contextlib.contextmanager
def function_engine(config: EvolutionConfig, task: Functions | BatchTask, table: NoiseTable | None) -> Iterator[Any]:
    """Where evaluation happens, closed whatever happens; inside this process torch keeps to one thread, as workers do."""
    engine: BatchEngine | LowRankEngine | InlineEngine | ThreadEngine | LocalEngine
    if isinstance(task, LowRankBatches):
        engine = LowRankEngine(task)
    elif isinstance(task, BatchTask):
        engine = BatchEngine(task, table)
    elif config.workers == 0:
        engine = InlineEngine(task, table)
    elif config.executor == "threads":
        engine = ThreadEngine([task.for_thread() for _ in range(local_workers(config))], table)
    else:
        engine = _processes(config, task, table)
    try:
        with one_torch_thread(isinstance(engine, InlineEngine | ThreadEngine)):
            yield engine
    finally:
        engine.close()


def _processes(config: EvolutionConfig, task: Functions, table: NoiseTable | None) -> LocalEngine:
    try:
        return LocalEngine(task, local_workers(config), table, config.timeout)
    except Exception as error:  # whatever a user's object raises when it is pickled
        check_sendable(task.subject, task.call.function)
        raise RunError(f"worker processes could not be started: {error}") from error


def local_workers(config: EvolutionConfig) -> int:
    """How many workers this machine gives."""
    return LOCAL_WORKERS if config.workers is None else config.workers


def about(flat: FlatParameters, task: Functions | BatchTask) -> dict[str, Any]:
    """What a run folder must remember of the model."""
    from esker import __version__

    versions = {"python": platform.python_version(), "numpy": np.__version__, "torch": torch.__version__}
    return {
        "parameters": flat.describe(),
        "start": hashlib.sha256(flat.read().tobytes()).hexdigest(),
        "batched": isinstance(task, BatchTask),
        "fingerprint": fingerprint(None) + _accelerator(task),
        "versions": {"esker": __version__, **versions},
    }


def _accelerator(task: Functions | BatchTask) -> str:
    """The device whose bits an update depends on, where it is no CPU."""
    device = resolve_device(task.device)
    low = isinstance(task, LowRankBatches) and device.type == "cuda"
    return f" {torch.cuda.get_device_name(device)}" if low else ""


def continue_in(folder: RunFolder, config: EvolutionConfig, state: FunctionEvolution, here: dict[str, Any]) -> list[str]:
    """Bring a state to the last committed iteration. A model or machine that does not fit raises UsageError."""
    then, name = folder.about(), str(folder.path)
    if then.get("parameters") != here["parameters"]:
        raise UsageError(f"the model's moving parameters are not those of the run in {name!r}")
    if then.get("batched") != here["batched"]:
        raise UsageError(f"the run in {name!r} was made with {'reward_batch' if then.get('batched') else 'reward'}")
    if then.get("fingerprint") != here["fingerprint"] and not config.inexact:
        raise UsageError(
            "this machine computes other bits than the one the run began on; to continue anyway, add inexact=True"
        )
    if folder.newest(folder.committed())[0] is None and then.get("start") != here["start"]:
        raise RunError(f"no intact checkpoint is left in {name!r}; give the model with the values it began with")
    folder.lock()
    try:
        notices = replay_facts(folder, state)
        folder.write_config(config)
    finally:
        folder.unlock()
    return notices
