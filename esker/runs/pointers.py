"""Which generation `best`, `latest` or a number means in a run."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from esker.errors import Damage, UsageError
from esker.runs import checkpoints
from esker.runs.files import read_small
from esker.runs.folder import RunFolder
from esker.runs.seals import open_json
from esker.system import disk


def wanted(folder: RunFolder, checkpoint: str | int, newest: int) -> tuple[int, list[str]]:
    """The generation that is meant, and a notice where a pointer could not be used. Anything else raises UsageError."""
    if re.fullmatch(r"[0-9]{1,18}", str(checkpoint)):
        return int(checkpoint), []
    if checkpoint not in ("best", "latest"):
        raise UsageError(f"checkpoint is {checkpoint!r}; expected best, latest or a generation")
    file = folder.best_file if checkpoint == "best" else folder.latest_file
    pointed = checkpoints.pointed(file)
    if pointed is not None and not (folder.checkpoints / checkpoints.folder_name(pointed)).is_dir():
        pointed = None
    what = "is damaged" if file.exists() else "is missing"
    if checkpoint == "latest":  # the newest, whatever the pointer names: it may name an older one after a crash or damage
        return newest, [] if pointed is not None else [Damage(f"latest {what}: using the newest, generation {newest}")]
    rows, judged = folder.rows(), folder.judged_rows()
    found = best_of(judged)
    ended = folder.status().startswith("finished")  # a crash may have come between final.json and `best`
    if pointed is not None and any(
        _may_be_best(folder, pointed, best_of(seen), seen) for seen in (judged, rows)[: 2 - ended]
    ):
        return pointed, []
    if found is None and (stored := best_by_snapshot(folder, -1)) is not None and stored <= newest:
        return stored, [Damage(f"best {what}: by the newest snapshot it is generation {stored}")]
    if found is None:  # no centre was evaluated yet: what there is, is the best
        return newest, []
    if found > newest:
        return newest, [Damage(f"best {what}: using the newest, generation {newest}")]
    return found, [Damage(f"best {what}: by the journal it is generation {found}")]


def _may_be_best(folder: RunFolder, pointed: int, by_journal: int | None, rows: list[dict[str, Any]]) -> bool:
    """Whether `best` may name this generation; one whose mean equals an earlier best's is not seen in the journal."""
    if by_journal in (None, pointed) or pointed > rows[-1]["generation"]:
        return True
    return by_journal < pointed and best_by_snapshot(folder, pointed) == pointed


def reopen(folder: RunFolder, best: int | None) -> None:
    """A run goes on: what was chosen at its former end is forgotten, and `best` names again the best of the run so far."""
    if best is not None and (folder.checkpoints / checkpoints.folder_name(best)).is_dir():
        checkpoints.point(folder.best_file, best)
    disk.remove(folder.path / "final.json")


def best_by_snapshot(folder: RunFolder, pointed: int) -> int | None:
    """The best generation by the newest intact snapshot behind the one that is pointed to, under whose checksum it is."""
    for generation in reversed(checkpoints.generations(folder.checkpoints)):
        if generation <= pointed:
            break
        with contextlib.suppress(OSError, ValueError, AttributeError):
            file = folder.checkpoints / checkpoints.folder_name(generation) / "state.json"
            values = open_json(read_small(file), unsealed=("generation",))
            best = values.get("progress", values).get("best_generation")
            return best if isinstance(best, int) else None
    return None


def best_of(rows: list[dict[str, Any]]) -> int | None:
    """The generation with the best centre: as the end of the run names it, else where the best return last changed."""
    found, best = None, None
    if rows and type(rows[-1].get("best_generation")) is int:
        return int(rows[-1]["best_generation"])
    for row in rows:
        if row.get("best_return") is not None and row["best_return"] != best:
            found, best = int(row["generation"]), row["best_return"]
    return found
