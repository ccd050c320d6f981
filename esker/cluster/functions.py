"""A user's own reward on every machine of a Ray cluster: the engine of `esker.Evolution(…, engine="ray")`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from esker.cluster.connect import connect
from esker.config.evolution import EvolutionConfig
from esker.engines.demand import demand_of
from esker.engines.node import setup_for
from esker.engines.ray import RayEngine
from esker.engines.roster import Roster
from esker.errors import RunError, UsageError
from esker.functions.pickling import check_sendable
from esker.functions.task import Functions
from esker.noise.table import NoiseTable


@contextlib.contextmanager
def cluster_engine(
    config: EvolutionConfig, task: Functions, table: NoiseTable | None, note: Callable[[str], None], fingerprint: str
) -> Iterator[RayEngine]:
    """Join the cluster and evaluate members on all of its nodes; their engines end with this. Raises UsageError."""
    setup = function_setup(config, task, table, fingerprint)
    for notice in connect(config, config.workers):
        note(notice)
    engine = RayEngine(Roster(setup, demand_of(config, config.workers)), note)
    try:
        yield engine
    finally:
        engine.close()


def function_setup(config: EvolutionConfig, task: Functions, table: NoiseTable | None, fingerprint: str) -> Any:
    """What nodes need to evaluate a reward. What cannot be sent to them raises UsageError."""
    shape = (config.seed, config.table_size) if table is not None else None
    try:
        return setup_for(task, shape, config.timeout, fingerprint, config.inexact, table)
    except UsageError:
        raise
    except Exception as error:  # whatever a user's object raises when it is pickled
        check_sendable(task.subject, task.call.function)
        raise RunError(f"the reward cannot be sent to the cluster: {error}") from error
