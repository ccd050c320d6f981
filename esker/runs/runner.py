"""Running a session to its end: the loop with its engine, observer and callbacks, and the folder left in order."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from esker.algorithms.algorithm import Engine
from esker.algorithms.loop import OnRow, Outcome, stop_reason, train
from esker.algorithms.observer import Observer, Pulsed, Pulsing, Returns, Row
from esker.algorithms.snapshot import Snapshot
from esker.algorithms.stalls import StallDetector
from esker.engines.engine import Pulse
from esker.errors import RunError, first_line, named_line
from esker.runs.deadline import Deadline, OutOfTime, deadline
from esker.runs.folder import Checkpoint, RunFolder
from esker.runs.memory import MemoryRun
from esker.runs.pointers import reopen
from esker.runs.session import Session

Stop = bool | str | None  # what a callback returns: True, or a text that says why, stops the run


class Interrupted(KeyboardInterrupt):
    """Training was interrupted; everything committed is saved."""

    def __init__(self, advice: str) -> None:
        super().__init__(f"interrupted; {advice}")


@dataclass(frozen=True)
class Callbacks:
    """What a caller of `train` or `resume` wants to be told."""

    on_generation: Callable[[Row], Stop] | None = None
    on_checkpoint: Callable[[Checkpoint], Stop] | None = None
    on_stop: Callable[[Path, Outcome | None], None] | None = None

    def __bool__(self) -> bool:
        return any((self.on_generation, self.on_checkpoint, self.on_stop))


def run(
    session: Session,
    observer: Observer,
    callbacks: Callbacks | None = None,
    open_engine: Callable[[], Engine] | None = None,
) -> Outcome:
    """Run the loop and leave the folder in order, however it ends; returns why it ended."""
    folder, state, callbacks = session.folder, session.state, callbacks or Callbacks()
    on_row = _connect(folder, observer, callbacks)
    observer.begin(state.config, folder, folder.rows())
    for text in session.notices:
        observer.note(text)
    folder.write_status("running")
    status, outcome = "failed", None
    try:
        opened = open_engine() if open_engine else session.open(observer)
        spent, wall_time = state.progress.wall_time, state.config.wall_time
        with (
            terminate_as_interrupt(),
            contextlib.closing(opened) as engine,
            deadline(wall_time, spent, lambda: state.generation) as limit,
        ):
            if isinstance(observer, Pulsed):
                observer.pulse(pulse_of(engine, state))
            if isinstance(folder, RunFolder) and stop_reason(state.config, state.progress, state.generation) is None:
                reopen(folder, state.progress.best_generation)
            try:
                stalls = StallDetector.after(folder.rows(), state.config)
                outcome = train(folder, state, engine, _counted(on_row, limit), stalls, limit.stop)
            except OutOfTime:
                outcome = Outcome(f"{wall_time:g} s of training done; the unfinished generation was dropped")
        status = f"finished: {outcome.reason}"
    except KeyboardInterrupt:
        status = "interrupted"
        raise Interrupted(session.advice()) from None
    except Exception as error:
        status = f"failed: {first_line(error)}"
        _explain(error, session.advice())
        raise
    finally:
        try:
            _leave(folder, state, status)
        finally:
            state.close()
            observer.end(status if outcome else status.partition(": ")[0])  # the caller prints the error
        if callbacks.on_stop:
            callbacks.on_stop(folder.path, outcome)
    return outcome


def _counted(on_row: OnRow, limit: Deadline) -> OnRow:
    """`on_row`, which also informs the deadline of every generation."""

    def counted(row: Row, returns: Returns | None = None) -> str | None:
        reason = on_row(row, returns)
        limit.generation()
        return reason

    return counted


def pulse_of(engine: Any, state: Any) -> Pulsing:
    """How far the generation under way is, by its engine or, where that does not count, by its state."""
    if hasattr(engine, "pulse"):
        source: Pulsing = engine.pulse
        return source
    progress, config = state.progress, state.config
    generation, steps = state.generation, progress.training_steps

    def pulse() -> Pulse:
        nonlocal generation, steps
        if state.generation != generation:
            generation, steps = state.generation, progress.training_steps
        done = max(0, progress.training_steps - steps)
        return Pulse(done, done, getattr(config, "generation_steps", None), "training steps")

    return pulse


def _connect(folder: RunFolder | MemoryRun, observer: Observer, callbacks: Callbacks) -> OnRow:
    """What the loop calls with each row: shows it, and returns why a callback wants to stop, if one does."""
    wishes: list[str] = []

    def wish(stop: Stop) -> None:
        if reason := reason_of(stop, "a callback"):
            wishes.append(reason)

    def on_checkpoint(checkpoint: Checkpoint) -> None:
        if callbacks.on_checkpoint:
            wish(callbacks.on_checkpoint(checkpoint))

    def on_row(row: Row, returns: Returns | None = None) -> str | None:
        observer.generation(row, returns)
        if callbacks.on_generation:
            wish(callbacks.on_generation(row))
        return wishes[0] if wishes else None

    folder.on_checkpoint = on_checkpoint
    return on_row


def reason_of(stop: Any, callback: str) -> str | None:
    """Why a callback stops the run, by what it returned; None: it does not. What has no truth raises RunError."""
    try:
        return None if not stop else stop if isinstance(stop, str) else f"stopped by {callback}"
    except Exception as error:
        kind = type(stop).__name__
        raise RunError(f"{callback} returned a {kind}; expected True, a text or None ({named_line(error)})") from error


def _explain(error: Exception, advice: str) -> None:
    """Replace an error by one that says how to continue."""
    if isinstance(error, OSError):
        raise RunError(f"{error.strerror or error}; {advice}") from error
    if isinstance(error, RunError):
        raise RunError(f"{error}\nnothing committed is lost; {advice}") from error


def _leave(folder: RunFolder | MemoryRun, state: Any, status: str) -> None:
    """Save and unlock, whatever goes wrong on the way."""
    try:
        with contextlib.suppress(OSError):  # a full disk: the facts are safe, and they suffice
            folder.write_status(status)
            if getattr(state, "whole", True):  # an interrupt may have come while it moved
                _keep(folder, state.snapshot())
            folder.prune(state.config.keep, state.progress.candidates)
    finally:
        folder.unlock()


def _keep(folder: RunFolder | MemoryRun, snapshot: Snapshot) -> None:
    if np.isfinite(snapshot.arrays["center"]).all():  # a centre that cannot act is not kept
        folder.checkpoint(snapshot, latest=True)


@contextlib.contextmanager
def terminate_as_interrupt() -> Iterator[None]:
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
