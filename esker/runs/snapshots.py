"""Runs that commit snapshots instead of facts: where such a run stands, and its journal in line with that."""

from __future__ import annotations

import json

from esker.errors import UsageError
from esker.runs import checkpoints
from esker.runs.checkpoints import Snapshot
from esker.runs.folder import RunFolder


def committed(folder: RunFolder) -> tuple[Snapshot | None, list[str]]:
    """The newest intact snapshot, and what was found damaged on the way to it."""
    numbers = checkpoints.generations(folder.checkpoints)
    snapshot, damaged = folder.newest(numbers[-1] if numbers else 0)
    return snapshot, [text.replace("using an older one and replaying the facts", "using an older one") for text in damaged]


def cut_journal(folder: RunFolder, generation: int) -> int:
    """Leave the rows before a generation; answers how many were cut."""
    rows = folder.rows()
    kept = [row for number, row in enumerate(rows) if row["generation"] == number and number < generation]
    text = "".join(json.dumps(row) + "\n" for row in kept)
    if folder.journal_file.exists() and folder.journal_file.read_text(errors="replace") != text:
        folder.journal_file.write_text(text)
    return len(rows) - len(kept)


def find(folder: RunFolder, checkpoint: str | int) -> tuple[Snapshot, list[str]]:
    """The snapshot that `best`, `latest` or a number names. One that is not there raises UsageError."""
    numbers = checkpoints.generations(folder.checkpoints)
    kept = ", ".join(str(number) for number in numbers) or "none"
    if checkpoint in ("best", "latest"):
        wanted = checkpoints.pointed(folder.best_file if checkpoint == "best" else folder.latest_file)
        wanted = wanted if wanted is not None else (numbers[-1] if numbers else 0)
    elif str(checkpoint).isdigit():
        wanted = int(checkpoint)
    else:
        raise UsageError(f"checkpoint is {checkpoint!r}; expected best, latest or a generation")
    if str(checkpoint).isdigit() and wanted not in numbers:
        raise UsageError(f"generation {wanted} has no snapshot; this run has: {kept} (--keep decides how many stay)")
    snapshot, damaged = folder.newest(wanted)
    if snapshot is None:
        raise UsageError(f"{str(folder.path)!r} has no intact snapshot; `esker resume` starts it again")
    return snapshot, [text.replace("using an older one and replaying the facts", "using an older one") for text in damaged]
