"""Following a run to its end: the loop with its engine, observers and callbacks, and the folder left in order."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from esker.algorithms import hybrids
from esker.algorithms.loop import Observer, Outcome, Returns, Row
from esker.algorithms.loop import train as train_loop
from esker.config.options import ClusterOptions, ESConfig
from esker.engines.engine import Engine
from esker.errors import RunError
from esker.logs.backends import with_backends
from esker.runs.assembly import (
    open_engine,
    ray_engine,
)
from esker.runs.folder import Checkpoint, RunFolder
from esker.runs.loading import Run
from esker.worlds.environments import Environment

Stop = bool | str | None  # what a callback answers: True, or a text that says why, stops the run


class Interrupted(KeyboardInterrupt):
    """Training was interrupted; everything committed is saved in `folder`."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(f"interrupted; continue with: esker resume {folder.path}")
        self.folder = folder


@dataclass(frozen=True)
class Callbacks:
    """What a caller of `train` or `resume` wants to be told."""

    on_generation: Callable[[Row], Stop] | None = None
    on_checkpoint: Callable[[Checkpoint], Stop] | None = None
    on_stop: Callable[[Run], None] | None = None

    def __bool__(self) -> bool:
        return any((self.on_generation, self.on_checkpoint, self.on_stop))


def follow(
    folder: RunFolder,
    state: Any,
    task: Any,
    table: Any,
    observer: Observer,
    notices: list[str],
    callbacks: Callbacks,
    make_engine: Callable[[], Any] | None = None,
) -> Run:
    """Run the loop and leave the folder in order, however it ends."""
    config = state.config
    observer = with_backends(observer, config.log)
    wishes: list[str] = []

    def wish(answer: Stop) -> None:
        if answer:
            wishes.append(answer if isinstance(answer, str) else "stopped by a callback")

    def saved(checkpoint: Checkpoint) -> None:
        if callbacks.on_checkpoint:
            wish(callbacks.on_checkpoint(checkpoint))

    def seen(row: Row, returns: Returns | None = None) -> str | None:
        observer.generation(row, returns)
        if callbacks.on_generation:
            wish(callbacks.on_generation(row))
        return wishes[0] if wishes else None

    folder.on_checkpoint = saved
    observer.begin(config, folder, folder.rows())
    for text in notices:
        observer.note(text)
    folder.write_status("running")
    status, outcome = "failed", None
    try:
        opened = contextlib.closing(make_engine()) if make_engine else _engine(folder, task, table, config, observer)
        with _terminate_as_interrupt(), opened as engine:
            loop: Callable[..., Outcome] = train_loop if isinstance(config, ESConfig) else hybrids.train
            outcome = loop(folder, state, engine, seen)
        status = f"finished: {outcome.reason}"
    except KeyboardInterrupt:
        status = "interrupted"
        raise Interrupted(folder) from None
    except Exception as error:
        status = f"failed: {_first_line(error)}"
        _explain(error, folder)
        raise
    finally:
        try:
            _leave(folder, state, status)
        finally:
            if table is not None:
                table.close()
            observer.end(status if outcome else status.partition(": ")[0])  # the error itself is said by whoever catches it
        if callbacks.on_stop:
            callbacks.on_stop(Run(folder.path, outcome))
    return Run(folder.path, outcome)


def _explain(error: Exception, folder: RunFolder) -> None:
    """Raise what the user can act on in place of an error that does not say how to go on."""
    if isinstance(error, OSError):
        raise RunError(f"{error.strerror or error}; continue with: esker resume {folder.path}") from error
    if isinstance(error, RunError):
        raise RunError(f"{error}\nnothing committed is lost; continue with: esker resume {folder.path}") from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def connect_engine(config: Any) -> list[str]:
    """Join or start the cluster of a Ray engine, before anything is written. Answers notices; raises UsageError."""
    if config.engine == "local":
        return []
    from esker.cluster.connect import check_learner, connect

    if isinstance(config, ESConfig):
        return connect(config, config.workers)
    return connect(config, hybrids.actors(config)) + check_learner(config, apart=hybrids.critic_apart(config))


def has_coordinator(config: ClusterOptions) -> bool:
    """A cluster that outlives this process gets a coordinator that does too; a callback keeps the loop in here."""
    if config.engine == "local":
        return False
    from esker.cluster.connect import is_own

    return not is_own()


def watch(folder: RunFolder, environment: Environment, observer: Observer, notices: list[str]) -> Run:
    """Let a coordinator on the cluster run the loop, and watch it. Ctrl-C stops the run; our death does not."""
    from esker.cluster.submit import run_on_cluster

    folder.unlock()
    try:
        reason = run_on_cluster(folder, environment, observer, notices)
    except KeyboardInterrupt:
        raise Interrupted(folder) from None
    return Run(folder.path, Outcome(reason, reason.startswith("goal reached")))


def _engine(
    folder: RunFolder, task: Any, table: Any, config: ESConfig, observer: Observer
) -> contextlib.AbstractContextManager[Engine]:
    if config.engine == "ray":
        return contextlib.closing(ray_engine(config, task, folder.about()["fingerprint"], observer.note, shared=table))
    return open_engine(task, config.workers, table, config.step_timeout)


def _leave(folder: RunFolder, state: Any, status: str) -> None:
    """Save and unlock, whatever goes wrong on the way."""
    try:
        with contextlib.suppress(OSError):  # a full disk: the facts are safe, and they suffice
            folder.write_status(status)
            folder.checkpoint(state.snapshot(), latest=True)
            folder.prune(state.config.keep)
    finally:
        folder.unlock()


@contextlib.contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end training as Ctrl-C does: saved, then out."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not in the main thread: the caller handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
