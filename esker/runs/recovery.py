"""Bringing a state up to date with its run: the newest intact snapshot, then the committed generations after it.

Runs that commit facts replay them, and nothing is simulated again. Runs of the algorithms with gradients commit
snapshots: what came after the newest one is trained again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from esker.algorithms.algorithm import Algorithm
from esker.algorithms.snapshot import Snapshot
from esker.errors import RunError, UsageError
from esker.learners.rows import REPLAY_FILE, first_damage
from esker.runs import snapshots
from esker.runs.folder import RunFolder
from esker.runs.repair import repair
from esker.system.words import count


def catch_up(algorithm: Algorithm, folder: RunFolder, state: Any) -> list[str]:
    """Bring a state to the last committed generation; returns what was repaired on the way."""
    return replay_facts(folder, state) if algorithm.commits_facts else _by_snapshots(folder, state)


def replay_facts(folder: RunFolder, state: Any) -> list[str]:
    """Bring a state to the last committed generation, simulating nothing; returns what was repaired.

    Rows that the journal lacks and the best snapshot are written on the way.
    """
    notices = repair(folder)
    committed, known = folder.committed(), {row["generation"] for row in folder.rows()}
    missing = next((generation for generation in range(committed) if generation not in known), committed)
    snapshot, damaged = folder.newest(missing)
    if snapshot is not None and folder.scan().reach(snapshot.generation) < committed:  # rows of lost records stay lost
        snapshot, damaged = folder.newest(committed)
    _begin(folder, state, snapshot)
    for facts in folder.facts(state.generation):
        missing_row = state.generation not in known
        row = state.replay(facts, folder)
        if missing_row:
            folder.write_row(row)
    if state.generation % state.config.checkpoint_every == 0 and folder.stored(state.generation) is None:
        folder.checkpoint(state.snapshot(), latest=True)  # it was due when the run was cut short
    return notices + damaged


def rewind(folder: RunFolder, state: Any, generation: int) -> list[str]:
    """Bring a state to any generation that was ever committed as facts, without writing anything."""
    snapshot, damaged = folder.newest(generation)
    _begin(folder, state, snapshot)
    for facts in folder.facts(state.generation):
        if state.generation >= generation:
            break
        state.replay(facts)
    if state.generation != generation:
        raise RunError(f"generation {generation} cannot be recomputed: the facts of generation {state.generation} are lost")
    return damaged


def _begin(folder: RunFolder, state: Any, snapshot: Snapshot | None) -> None:
    """Restore a snapshot; without one the start must follow from the configuration, and a warm start's does not."""
    if snapshot is not None:
        state.restore(snapshot)
    elif not state.starts_as_configured:
        raise RunError(f"no intact checkpoint is left in {folder.path}, and this run's start cannot be recomputed")


def _by_snapshots(folder: RunFolder, state: Any) -> list[str]:
    snapshot, notices = snapshots.committed(folder, lambda snapshot: _damaged_replay(folder, state, snapshot))
    if snapshot is not None:
        state.restore(snapshot)
    lost = snapshots.cut_journal(folder, state.generation)
    if lost:
        notices.append(f"{count(lost, 'generation')} after the newest snapshot must be trained again")
    if state.config.replay_file:
        _check_replay(folder, state)
    elif state.progress.training_steps:
        state.task = replace(state.task, replay_begin=state.progress.training_steps)
        notices.append(
            "the replay buffer was not kept (--no-replay-file): random play fills it again, and this resume is not exact"
        )
    return notices


def _damaged_replay(folder: RunFolder, state: Any, snapshot: Snapshot) -> str | None:
    """What is wrong with the transitions that a snapshot would learn from; None where they are intact or not checked."""
    sums, count = snapshot.values.get("replay", ([], 0))
    file, width = folder.path / REPLAY_FILE, state.task.spec.layout.width
    if not count or not state.config.replay_file or not file.is_file() or file.stat().st_size < count * width * 4:
        return None  # a lost file is refused as such
    at = first_damage(file, width, range(max(0, count - state.config.replay_size), count), sums)
    return None if at is None else f"the transitions from {at:,} on that it learned from are damaged in {REPLAY_FILE}"


def _check_replay(folder: RunFolder, state: Any) -> None:
    """Refuse a folder without the transitions that its snapshot counts: it would learn from zeros. Raises UsageError."""
    file, needed = folder.path / REPLAY_FILE, state.progress.training_steps * state.task.spec.layout.width * 4
    if needed and (not file.exists() or file.stat().st_size < needed):
        raise UsageError(
            f"{str(file)!r} is missing or cut short, and a resume needs it; resume on the machine where the run was, "
            "or copy that file from there"
        )
