"""The loop of every synchronous algorithm: evaluate, commit, advance; and its twin that replays instead of evaluating."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from esker.algorithms.center import Progress
from esker.config.options import StopOptions
from esker.errors import RunError
from esker.runs.checkpoints import Snapshot
from esker.runs.facts import Facts
from esker.runs.folder import RunFolder
from esker.runs.repair import mend

Row = dict[str, Any]
Returns = NDArray[np.float64]


class Observer(Protocol):
    """Sees a run go by."""

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> None: ...
    def generation(self, row: Row, returns: Returns | None = None) -> None: ...
    def note(self, text: str) -> None: ...
    def end(self, reason: str) -> None: ...


class State(Protocol):
    """What an algorithm is to its loop: a state that facts alone move."""

    config: Any
    progress: Progress

    @property
    def generation(self) -> int: ...
    @property
    def drawn(self) -> bool: ...
    def job(self) -> Any: ...
    def plan(self) -> Any: ...
    def facts(self, plan: Any, seconds: float) -> Facts: ...
    def improves(self, facts: Facts) -> bool: ...
    def advance(self, facts: Facts) -> Row: ...
    def snapshot(self) -> Snapshot: ...
    def restore(self, snapshot: Snapshot) -> None: ...


class Record(Protocol):
    """Where a run is committed: a run folder, or nowhere."""

    def commit(self, facts: Facts) -> None: ...
    def write_row(self, row: Row) -> None: ...
    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None: ...
    def prune(self, keep: int | None) -> None: ...


class Evaluates(Protocol):
    """An engine, as its state's jobs and plans need it."""

    def evaluate(self, job: Any, plan: Any) -> None: ...


class Seen(Protocol):
    """Is shown each row, with the returns of its members where there are any; answers why to stop, if so."""

    def __call__(self, row: Row, returns: Returns | None = None) -> str | None: ...


@dataclass(frozen=True)
class Outcome:
    """Why training stopped."""

    reason: str
    goal_reached: bool = False


def train(folder: Record, state: State, engine: Evaluates, seen: Seen) -> Outcome:
    """Go from the state's generation to a stop condition; `seen` is shown each row and may stop it."""
    config, mark = state.config, time.monotonic()
    while (outcome := stop_reason(config, state)) is None:
        plan = state.plan()
        engine.evaluate(state.job(), plan)
        mark, seconds = time.monotonic(), time.monotonic() - mark
        facts = state.facts(plan, seconds)
        folder.commit(facts)  # from here on the generation is a fact
        row = apply(folder, state, facts)
        if state.generation % config.checkpoint_every == 0:
            folder.checkpoint(state.snapshot(), latest=True)
            folder.prune(config.keep)
        if reason := seen(row, facts.returns):
            return Outcome(reason)
    return outcome


def apply(folder: Record, state: State, facts: Facts, write_row: bool = True) -> Row:
    """Let a committed generation move the state, and record what follows from it."""
    if state.improves(facts):
        folder.checkpoint(state.snapshot(), best=True)
    row = state.advance(facts)
    if write_row:
        folder.write_row(row)
    return row


def catch_up(folder: RunFolder, state: State) -> list[str]:
    """Bring a state to the last committed generation: newest intact snapshot, then replayed facts. Nothing is simulated.

    Rows that the journal lacks and the best snapshot are written on the way. Answers what had to be mended.
    """
    said = mend(folder)
    committed, known = folder.committed(), {row["generation"] for row in folder.rows()}
    missing = next((generation for generation in range(committed) if generation not in known), committed)
    snapshot, damaged = folder.newest(missing)
    if snapshot is not None and folder.scan().reach(snapshot.generation) < committed:  # rows of lost records stay lost
        snapshot, damaged = folder.newest(committed)
    _begin(folder, state, snapshot)
    for facts in folder.facts(state.generation):
        apply(folder, state, facts, write_row=state.generation not in known)
    return said + damaged


def rewind(folder: RunFolder, state: State, generation: int) -> list[str]:
    """Bring a state to any generation that was ever committed, without writing anything."""
    snapshot, damaged = folder.newest(generation)
    _begin(folder, state, snapshot)
    for facts in folder.facts(state.generation):
        if state.generation >= generation:
            break
        state.advance(facts)
    if state.generation != generation:
        raise RunError(f"generation {generation} cannot be recomputed: the facts of generation {state.generation} are lost")
    return damaged


def _begin(folder: RunFolder, state: State, snapshot: Snapshot | None) -> None:
    """Restore a snapshot; without one the start must follow from the configuration, and a warm start's does not."""
    if snapshot is not None:
        state.restore(snapshot)
    elif not state.drawn:
        raise RunError(f"no intact checkpoint is left in {folder.path}, and how this run began cannot be recomputed")


def stop_reason(config: StopOptions, state: Any) -> Outcome | None:
    """Why a run is done, if it is."""
    progress = state.progress
    if config.goal is not None and config.patience is not None and progress.goal_streak >= config.patience:
        return Outcome(f"goal reached: centre return ≥ {config.goal:g}, {config.patience} times in a row", True)
    if state.generation >= (config.generation_limit or math.inf):
        return Outcome(f"{state.generation:,} generations done")
    if progress.env_steps >= (config.steps or math.inf):
        return Outcome(f"{progress.env_steps:,} environment steps done")
    if config.training_limit is not None and progress.training_steps >= config.training_limit:
        return Outcome(
            f"{progress.training_steps:,} training steps done{_beyond(progress.training_steps, config.training_limit)}"
        )
    if progress.wall_time >= (config.wall_time or math.inf):
        return Outcome(f"{progress.wall_time:.0f} s of training done")
    return None


def _beyond(steps: int, limit: int) -> str:
    return f" (limit {limit:,}: episodes under way are finished)" if steps > limit else ""


def stop_text(config: StopOptions) -> str:
    """The stop conditions in words."""
    limit, training = config.generation_limit, config.training_limit
    parts = [f"{limit:,} generations" if limit else "", f"{training:,} training steps" if training else ""]
    parts += [f"{config.steps:,} steps" if config.steps else ""]
    parts += [f"{config.wall_time:g} s of training" if config.wall_time else ""]
    if config.goal is not None:
        parts.append(f"centre return ≥ {config.goal:g}, {config.patience} times in a row")
    return " or ".join(filter(None, parts))
