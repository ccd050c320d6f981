"""The loop of every algorithm with gradients: a generation, its row, and the snapshot that commits it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from esker.algorithms.hybrid import Hybrid, Parts
from esker.algorithms.loop import Outcome, Seen, stop_reason
from esker.errors import UsageError
from esker.learners.rows import REPLAY_FILE, first_damage
from esker.runs.checkpoints import Snapshot
from esker.runs.folder import RunFolder
from esker.runs.snapshots import committed, cut_journal

Row = dict[str, Any]


def train(folder: RunFolder, state: Hybrid, parts: Parts, seen: Seen) -> Outcome:
    """Go from the state's generation to a stop condition; `seen` is shown each row and may stop it."""
    config, mark = state.config, time.monotonic()
    while (outcome := stop_reason(config, state)) is None:
        before, steps = state.snapshot(), state.progress.env_steps
        row = state.advance(parts)
        mark, seconds = time.monotonic(), time.monotonic() - mark
        state.progress.wall_time += seconds
        if config.replay_file:
            count = state.progress.training_steps
            state.sums = parts.replay.rows.sums(count, *state.sums), count
        state.settle()
        row["wall_time"] = state.progress.wall_time
        row["steps_per_second"] = (state.progress.env_steps - steps) / seconds
        improved = row.pop("improved")
        folder.write_row(row)
        if improved:
            folder.checkpoint(before, best=True)
        if state.generation % config.checkpoint_every == 0:
            commit(folder, state, parts)
        if reason := seen(row):
            return Outcome(reason)
    commit(folder, state, parts)
    return outcome


def commit(folder: RunFolder, state: Hybrid, parts: Parts) -> None:
    """Make everything up to here durable: first the transitions, then the snapshot that counts them."""
    parts.replay.rows.sync()
    folder.checkpoint(state.snapshot(), latest=True)
    folder.prune(state.config.keep)


def catch_up(folder: RunFolder, state: Hybrid) -> list[str]:
    """Bring a state to the newest intact snapshot; answers what will be trained again, and what was damaged."""
    snapshot, said = committed(folder, lambda snapshot: damaged_replay(folder, state, snapshot))
    if snapshot is not None:
        state.restore(snapshot)
    lost = cut_journal(folder, state.generation)
    if lost:
        said.append(f"{lost} generations after the newest snapshot were not committed: they are trained again")
    if state.config.replay_file:
        check_replay(folder, state)
    if not state.config.replay_file and state.progress.training_steps:
        state.task = replace(state.task, replay_begin=state.progress.training_steps)
        said.append(
            "the replay buffer was not kept (--no-replay-file): random play fills it again, and this resume is not exact"
        )
    return said


def damaged_replay(folder: RunFolder, state: Hybrid, snapshot: Snapshot) -> str | None:
    """What is wrong with the transitions that a snapshot would learn from; None where they are intact or not checked."""
    sums, count = snapshot.values.get("replay", ([], 0))
    file, width = folder.path / REPLAY_FILE, state.task.spec.layout.width
    if not count or not state.config.replay_file or not file.is_file() or file.stat().st_size < count * width * 4:
        return None  # a lost file is refused as such
    at = first_damage(file, width, range(max(0, count - state.config.replay_size), count), sums)
    return None if at is None else f"the transitions from {at:,} on that it learned from are damaged in {REPLAY_FILE}"


def check_replay(folder: RunFolder, state: Hybrid) -> None:
    """Refuse a folder without the transitions that its snapshot counts: it would learn from zeros. Raises UsageError."""
    file, needed = folder.path / REPLAY_FILE, state.progress.training_steps * state.task.spec.layout.width * 4
    if needed and (not file.exists() or file.stat().st_size < needed):
        raise UsageError(
            f"{str(file)!r} is missing or cut short, and a resume needs it; resume on the machine where the run was, "
            "or copy that file from there"
        )
