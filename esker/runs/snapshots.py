"""Runs that commit snapshots instead of facts: the latest state of such a run, and its journal cut back to it."""

from __future__ import annotations

import json
from collections.abc import Callable

from esker.algorithms.snapshot import Snapshot
from esker.errors import Damage, UsageError
from esker.runs import checkpoints
from esker.runs.files import write_whole
from esker.runs.folder import RunFolder
from esker.runs.pointers import wanted


def committed(
    folder: RunFolder, wrong: Callable[[Snapshot], str | None] = lambda snapshot: None
) -> tuple[Snapshot | None, list[str]]:
    """The newest intact snapshot with which nothing is `wrong`, and what was found damaged on the way to it.

    Where only the very first is left, raises UsageError: a run is not begun again without being asked.
    """
    numbers = checkpoints.generations(folder.checkpoints)
    at_most, notices = numbers[-1] if numbers else 0, []
    while True:
        snapshot, damaged = folder.newest(at_most)
        notices += _without_facts(damaged)
        text = None if snapshot is None else wrong(snapshot)
        if snapshot is None or text is None:
            return snapshot, notices
        notices.append(Damage(f"checkpoint {checkpoints.folder_name(snapshot.generation)}: {text}; using an older one"))
        at_most = snapshot.generation - 1
        if not any(0 < number <= at_most for number in numbers):
            raise UsageError(f"{notices[-1].partition(';')[0]}, and no snapshot is older; copy that file from a backup")


def cut_journal(folder: RunFolder, generation: int) -> int:
    """Keep only the rows before a generation; returns how many were cut."""
    rows = folder.rows()
    kept = [row for number, row in enumerate(rows) if row["generation"] == number and number < generation]
    text = "".join(json.dumps(row) + "\n" for row in kept)
    if folder.journal_file.exists() and folder.journal_text() != text:
        write_whole(folder.journal_file, text)
    return len(rows) - len(kept)


def find(folder: RunFolder, checkpoint: str | int) -> tuple[Snapshot, list[str]]:
    """The snapshot that `best`, `latest` or a number names. One that is not there raises UsageError."""
    numbers = checkpoints.generations(folder.checkpoints)
    kept = ", ".join(str(number) for number in numbers) or "none"
    generation, notices = wanted(folder, checkpoint, numbers[-1] if numbers else 0)
    if checkpoint not in ("best", "latest") and generation not in numbers:
        raise UsageError(f"generation {generation} has no snapshot; this run has: {kept} (--keep sets how many are kept)")
    snapshot, damaged = folder.newest(generation)
    if snapshot is None:
        raise UsageError(f"{str(folder.path)!r} has no intact snapshot; `esker resume` starts it again")
    return snapshot, notices + _without_facts(damaged)


def _without_facts(damaged: list[str]) -> list[str]:
    return [Damage(text.replace("using an older one and replaying the facts", "using an older one")) for text in damaged]
