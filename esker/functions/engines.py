"""Where a reward is called: in this process, in others, on every node of a cluster, or by a server's workers."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from esker.algorithms.algorithm import Engine, Site
from esker.config.evolution import EvolutionConfig
from esker.engines.demand import demand_of
from esker.engines.engine import InlineEngine
from esker.engines.local import LocalEngine
from esker.engines.open import ray_engine
from esker.engines.remote.engine import RemoteEngine
from esker.engines.threads import ThreadEngine
from esker.errors import RunError, UsageError
from esker.functions.batches import BatchEngine
from esker.functions.lowrank.batches import LowRankBatches, LowRankEngine
from esker.functions.lowrank.fleet import LowRankFleet
from esker.functions.pickling import check_sendable
from esker.functions.problem import machine
from esker.functions.state import FunctionEvolution
from esker.functions.task import Functions, resolve_device
from esker.noise.table import NoiseTable
from esker.system.torch_threads import one_torch_thread

LOCAL_WORKERS = 4  # where no number is given


def open_engine(state: FunctionEvolution, site: Site) -> Engine:
    """The engine of a configuration. What cannot be sent to its workers raises UsageError."""
    config, task, table = state.config, state.task, state.table
    if isinstance(task, LowRankBatches):
        return _low_rank(config, task, state.strategy, site)
    if not isinstance(task, Functions):
        return BatchEngine(task, table)
    if state.server is not None:
        return RemoteEngine(state.server, task)
    if config.engine == "ray":
        return _on_nodes(config, task, table, site)
    if config.workers == 0:
        return OnOneThread(InlineEngine(task, table))
    workers = LOCAL_WORKERS if config.workers is None else config.workers
    if config.executor == "threads":
        return OnOneThread(ThreadEngine([task.for_thread() for _ in range(workers)], table))
    try:
        return LocalEngine(task, workers, table, config.timeout)
    except Exception as error:  # whatever a user's object raises when it is pickled
        check_sendable(task.subject, task.call.function)
        raise RunError(f"worker processes could not be started: {error}") from error


def _low_rank(config: EvolutionConfig, task: LowRankBatches, strategy: Any, site: Site) -> Engine:
    """An engine in this process, or as many as the GPUs of a cluster have room for."""
    if config.engine == "local":
        return LowRankEngine(replace(task, note=site.note))
    demand = demand_of(config, config.workers)
    return LowRankFleet(task, strategy, demand, site.note, config.timeout, config.inexact)


def _on_nodes(config: EvolutionConfig, task: Functions, table: NoiseTable | None, site: Site) -> Engine:
    """An engine on every node of the cluster that this process is connected to."""
    shape = (config.seed, config.table_size) if table is not None else None
    site = replace(site, fingerprint=site.fingerprint or machine(resolve_device(task.device), low_rank=False))
    try:
        return ray_engine(task, demand_of(config, config.workers), site, shape, table, config.timeout, config.inexact)
    except (UsageError, RunError):
        raise
    except Exception as error:  # whatever a user's object raises when it is pickled
        check_sendable(task.subject, task.call.function)
        raise RunError(f"the reward cannot be sent to the cluster: {error}") from error


class OnOneThread:
    """An engine inside this process: while it is open torch uses one thread, as in worker processes."""

    def __init__(self, engine: InlineEngine | ThreadEngine) -> None:
        self._engine = engine
        self._threads = contextlib.ExitStack()
        self._threads.enter_context(one_torch_thread())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def close(self) -> None:
        """Close the engine, and give torch its threads back."""
        self._threads.close()
        self._engine.close()
