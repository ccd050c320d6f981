"""A node of a cluster: one local engine behind one Ray actor, fed with ranges of items and returning arrays.

This file does not import Ray: `esker.engines.roster` makes the class an actor.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from esker.engines.local import LocalEngine
from esker.engines.openplan import OpenPlan
from esker.engines.packing import Packed, pack
from esker.engines.replica import Replica
from esker.engines.supervisor import CannotStart
from esker.errors import RunError, UsageError
from esker.noise.directions import Vector
from esker.noise.table import NoiseTable, TableNoise
from esker.system import clock
from esker.tasks.hybrid import HybridTask
from esker.tasks.task import Job, Task

ABANDONED_AFTER = 60.0  # seconds without a call from a coordinator, after which a node's engine exits


class Outdated(Exception):
    """An order from a coordinator that has been replaced."""


def exit_if_outdated(error: Exception) -> None:
    """End this process if a node refused its order: Ray starts the coordinator again unless another one took its place."""
    if isinstance(getattr(error, "cause", None), Outdated):
        clock.exit_process(1)


@dataclass(frozen=True)
class NodeSetup:
    """What every node's engine is opened with; `task` is cloudpickled and loaded once `path` is in place."""

    task: bytes
    path: list[str]
    table: tuple[int, int] | None  # seed and size
    table_at: tuple[int, int] | None  # process and descriptor that have it on the coordinator's machine
    step_timeout: float | None
    versions: dict[str, str]
    fingerprint: str | None
    inexact: bool


@dataclass(frozen=True)
class Welcome:
    """A node's reply to being opened; `refusal` says why it cannot take part."""

    host: str
    pid: int
    refusal: str | None = None
    notice: str | None = None


@dataclass(frozen=True)
class Order:
    """Items of a round, which is one `evaluate` of the coordinator.

    The reply is due when at most `low` are unfinished, or after `patience` seconds.
    """

    epoch: int
    round: int
    items: NDArray[np.int64]
    low: int
    patience: float


@dataclass(frozen=True)
class NodeReply:
    """Results since the last reply. `failure` is an item's fault and stops the run, `unfit` the node's."""

    round: int
    results: Packed
    dropped: int
    failure: str | None = None
    unfit: str | None = None


def setup_for(
    task: Task | HybridTask,
    table: tuple[int, int] | None = None,
    step_timeout: float | None = None,
    fingerprint: str | None = None,
    inexact: bool = False,
    shared: NoiseTable | None = None,
) -> NodeSetup:
    """What nodes need to know to evaluate this task as this process would; those on its machine share its noise table."""
    at = (os.getpid(), shared.descriptor) if shared else None
    return NodeSetup(cloudpickle.dumps(task), list(sys.path), table, at, step_timeout, versions(), fingerprint, inexact)


def versions() -> dict[str, str]:
    """What must agree between all nodes for messages to be understood."""
    from importlib.metadata import version

    from esker import __version__

    return {"esker": __version__, "ray": version("ray"), "python": ".".join(platform.python_version_tuple()[:2])}


def received(setup: NodeSetup) -> tuple[Welcome, Any]:
    """The task of a setup on this node, or None and a welcome that says why this node cannot take part."""
    host = platform.node()
    differing = {name: (ours, setup.versions.get(name)) for name, ours in versions().items()}
    wrong = [f"{name} {a} (the run: {b})" for name, (a, b) in differing.items() if a != b]
    if wrong:
        return Welcome(host, os.getpid(), f"it has {', '.join(wrong)}"), None
    sys.path += [path for path in setup.path if path not in sys.path and os.path.isdir(path)]
    try:
        task = cloudpickle.loads(setup.task)
        own = _fingerprint(task) if setup.fingerprint else None
    except (ImportError, UsageError) as error:
        return Welcome(host, os.getpid(), f"the task cannot be opened there: {error}"), None
    notice = None
    if own != setup.fingerprint:
        notice = f"it computes other bits than the run began with (numeric fingerprint {own}, not {setup.fingerprint})"
        if not setup.inexact:
            return Welcome(host, os.getpid(), notice), None
    return Welcome(host, os.getpid(), notice=notice), task


class NodeEngine:
    """Opened by a coordinator, obeys the newest one, and exits when none has called for a minute."""

    def __init__(self) -> None:
        self.replica = Replica()
        self._epoch = 0
        self._lock = clock.Lock()
        self._heard_at = clock.monotonic()
        self._engine: LocalEngine | None = None
        self._welcome: Welcome | None = None
        self._round: int | None = None
        self._plan: OpenPlan | None = None
        self._work: clock.SimpleQueue[tuple[Job, OpenPlan]] = clock.SimpleQueue()
        self._dropped = 0
        self._noise: TableNoise | None = None

    def open(self, epoch: int, setup: NodeSetup, workers: int, slots: int | None) -> Welcome:
        """Start the workers, or return why this node cannot take part. An engine that is open already stays as it is."""
        with self._lock:
            self._obey(epoch)
            if self._welcome is None:
                self._welcome = self._open(setup, workers, slots)
            return self._welcome

    def _open(self, setup: NodeSetup, workers: int, slots: int | None) -> Welcome:
        welcome, task = received(setup)
        if task is None:
            return welcome
        if slots is not None:
            task = replace(task, slots=slots)
        table = NoiseTable.of_process(*setup.table_at, *setup.table) if setup.table and setup.table_at else None
        if setup.table and table is None:
            table = NoiseTable.create(*setup.table)
        self._noise = task.noise(table) if table is not None else None
        self._engine = LocalEngine(task, workers, table, setup.step_timeout)
        clock.Thread(target=self._run, daemon=True).start()
        clock.Thread(target=self._exit_when_abandoned, daemon=True).start()
        return welcome

    def feed(self, order: Order, job: list[Any]) -> NodeReply:
        """Take items in, wait for results, return them. `job` holds a reference, fetched once a round."""
        with self._lock:
            self._obey(order.epoch)
            plan = self._enter(order.round, job)
        assert self._engine is not None
        plan.offer(order.items.tolist())
        self._engine.wake()
        results = plan.collect(order.low, order.patience)
        with self._lock:
            self._heard_at = clock.monotonic()
            dropped, self._dropped = self._dropped, 0
        unfit = str(plan.failure) if isinstance(plan.failure, CannotStart) else None
        failure = str(plan.failure) if plan.failure and not unfit else None
        return NodeReply(order.round, pack(results), dropped, failure, unfit)

    def partial_sum(self, epoch: int, generation: int, weights: list[Any], start: int, stop: int) -> Vector:
        """Some coordinates of an update's weighted sum, from this node's noise table; `weights` holds a reference."""
        import ray

        with self._lock:
            self._obey(epoch)
        assert self._noise is not None
        return self._noise.partial_sum(generation, ray.get(weights[0]), start, stop)

    def finish(self, epoch: int, round: int) -> None:
        """The round is complete: drop what is under way."""
        with self._lock:
            self._obey(epoch)
            if round == self._round:
                self._close_plan()

    def touch(self, epoch: int) -> None:
        """A heartbeat of the coordinator."""
        with self._lock:
            self._obey(epoch)

    def pids(self) -> list[int]:
        """The worker processes, for tests and monitoring."""
        return [] if self._engine is None else self._engine.pids

    def store(self, epoch: int, files: dict[str, bytes], facts_at: int, facts: bytes) -> int:
        """Keep a copy of what the coordinator commits; returns the length of the copy of the facts."""
        with self._lock:
            self._obey(epoch)
            return self.replica.store(files, facts_at, facts)

    def stored(self) -> tuple[int, int]:
        """The newest epoch obeyed here, and how many bytes of facts the copy held here has."""
        return self._epoch, self.replica.length

    def fetch(self) -> dict[str, bytes]:
        """The files of the copy held here."""
        return self.replica.files()

    def quit(self, epoch: int) -> None:
        """The run is over."""
        with self._lock:
            self._obey(epoch)
        self._exit(0)

    def _obey(self, epoch: int) -> None:
        if epoch < self._epoch:
            raise Outdated(f"coordinator {epoch} was replaced by {self._epoch}")
        if epoch > self._epoch:  # an older coordinator's work is of no use to the new one
            self._close_plan()
            self._epoch, self._round = epoch, None
        self._heard_at = clock.monotonic()

    def _enter(self, round: int, job: list[Any]) -> OpenPlan:
        if self._plan is None or round != self._round:
            import ray

            self._close_plan()
            self._plan, self._round = OpenPlan(), round
            self._work.put((ray.get(job[0]), self._plan))
        return self._plan

    def _close_plan(self) -> None:
        if self._plan is not None and self._engine is not None:
            self._plan.close()
            self._engine.wake()

    def _run(self) -> None:
        """The engine's own thread: round after round."""
        assert self._engine is not None
        while True:
            job, plan = self._work.get()
            if plan.complete is not None:
                continue
            failure: Exception | None = None
            try:
                self._engine.evaluate(job, plan)
            except RunError as error:
                failure = error
            with self._lock:
                self._dropped += plan.dropped_steps
            plan.leave(failure)

    def _exit_when_abandoned(self) -> None:
        while clock.monotonic() - self._heard_at < ABANDONED_AFTER:
            clock.sleep(1)
        self._exit(1)

    def _exit(self, status: int) -> None:
        if self._engine is not None:
            self._engine.close()
        clock.exit_process(status)


def _fingerprint(task: Any) -> str:
    """This machine's numeric fingerprint, for the task's environment where it has one."""
    from esker.noise.fingerprint import fingerprint
    from esker.worlds.environments import silence

    if not hasattr(task, "environment"):
        return fingerprint(None)
    with silence():
        env = task.environment.make()
    try:
        return fingerprint(env)
    finally:
        env.close()
