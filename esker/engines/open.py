"""Opening engines: worker processes on this machine, or an engine on every node of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from esker.engines.engine import Engine, InlineEngine
from esker.engines.local import LocalEngine
from esker.errors import UsageError
from esker.noise.table import NoiseTable
from esker.system.cores import available_cores
from esker.tasks.task import Task

if TYPE_CHECKING:
    from esker.engines.demand import Demand
    from esker.engines.ray import RayEngine


MOST_WORKERS = 1024  # of one machine


class Site(Protocol):
    """What an engine on a cluster knows of its run."""

    @property
    def fingerprint(self) -> str | None: ...
    @property
    def note(self) -> Callable[[str], None]: ...
    @property
    def run(self) -> str | None: ...
    @property
    def epoch(self) -> int: ...


def local_engine(
    task: Task, workers: int | None, table: NoiseTable | None = None, step_timeout: float | None = None
) -> Engine:
    """The engine of this machine, with this many workers (None: one per core; 0: in this process)."""
    count = available_cores() if workers is None else workers
    if not 0 <= count <= MOST_WORKERS:
        raise UsageError(f"workers is {count}; expected 0 to {MOST_WORKERS:,} on one machine")
    return LocalEngine(task, count, table, step_timeout) if count else InlineEngine(task, table)


def ray_engine(
    task: Task,
    demand: Demand,
    site: Site,
    table: tuple[int, int] | None = None,
    shared: NoiseTable | None = None,
    step_timeout: float | None = None,
    inexact: bool = False,
) -> RayEngine:
    """The engine of the cluster that this process is connected to.

    `table` is the seed and size of the noise table that each machine makes; nodes on this one use the `shared` one.
    """
    from esker.engines.node import setup_for
    from esker.engines.ray import RayEngine
    from esker.engines.roster import Roster

    setup = setup_for(task, table, step_timeout, site.fingerprint, inexact, shared)
    return RayEngine(Roster(setup, demand, site.run, site.epoch), site.note)
