"""Which generation `best`, `latest` or a number means in a run."""

from __future__ import annotations

import re
from typing import Any

from esker.errors import Damage, UsageError
from esker.runs import checkpoints
from esker.runs.folder import RunFolder


def wanted(folder: RunFolder, checkpoint: str | int, newest: int) -> tuple[int, list[str]]:
    """The generation that is meant, and a notice where a pointer could not be used. Anything else raises UsageError."""
    if re.fullmatch(r"[0-9]{1,18}", str(checkpoint)):
        return int(checkpoint), []
    if checkpoint not in ("best", "latest"):
        raise UsageError(f"checkpoint is {checkpoint!r}; expected best, latest or a generation")
    file = folder.best_file if checkpoint == "best" else folder.latest_file
    pointed = checkpoints.pointed(file)
    if pointed is not None and (folder.checkpoints / checkpoints.folder_name(pointed)).is_dir():
        return pointed, []
    found = best_of(folder.judged_rows()) if checkpoint == "best" else newest
    if found is None:  # no centre was evaluated yet: what there is, is the best
        return newest, []
    what = "is damaged" if file.exists() else "is missing"
    if found > newest:
        return newest, [Damage(f"{checkpoint} {what}: using the newest, generation {newest}")]
    return found, [Damage(f"{checkpoint} {what}: by the journal it is generation {found}")]


def best_of(rows: list[dict[str, Any]]) -> int | None:
    """The generation with the best centre: the last at which the journal's best return changed."""
    found, best = None, None
    for row in rows:
        if row.get("best_return") is not None and row["best_return"] != best:
            found, best = int(row["generation"]), row["best_return"]
    return found
