"""Which runs there are under a folder, and their status."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esker.errors import UsageError
from esker.runs.files import open_plain
from esker.runs.folder import RunFolder, is_checkpoint

TAIL = 1 << 16  # bytes at the end of a journal that surely hold its last row


@dataclass(frozen=True)
class RunSummary:
    """A run in one line. `best` is the best centre return; `age` is seconds since it began, `idle` since it last moved."""

    path: str
    env: str
    algo: str
    seed: int | None
    generation: int
    env_steps: int
    best: float | None
    status: str
    reason: str | None
    age: float
    idle: float


def list_runs(root: Path) -> list[RunSummary]:
    """Every run under a folder, itself included. A folder that does not exist raises UsageError."""
    if not root.is_dir():
        raise UsageError(f"{str(root)!r} is not a folder; expected one that holds run folders, as `esker train` makes them")
    now = time.time()
    return [summarize(RunFolder(path), now) for path in find_runs(root)]


def find_runs(root: Path) -> Iterator[Path]:
    """The run folders under a folder; the inside of a run is not searched."""
    for parent, folders, _ in os.walk(root):
        if is_run(Path(parent)):
            folders.clear()
            if not is_checkpoint(Path(parent)):  # one on its own, such as a model card's folder
                yield Path(parent)
        else:
            folders.sort()


def is_run(path: Path) -> bool:
    """Whether a folder is a run, if need be by the copies of its description next to a checkpoint."""
    names = ("config.toml", "about.json")
    return all((path / name).is_file() or any(path.glob(f"checkpoints/[0-9]*/{name}")) for name in names)


def summarize(folder: RunFolder, now: float) -> RunSummary:
    """One run, read without waiting for it; a damaged one has that as its status."""
    try:
        config, about = folder.values(), folder.about()
        status, _, reason = (
            f"damaged: {folder.damage[0]}".partition(": ") if folder.damage else folder.status().partition(": ")
        )
    except (OSError, ValueError) as error:
        config, about, status, reason = {}, {}, "damaged", " ".join(str(error).split())
    row = last_row(folder.journal_file)
    seed, best = config.get("seed"), folder.best_return([row] if row else [])
    started = _number(about.get("started")) or folder.about_file.stat().st_mtime
    moved = folder.journal_file if folder.journal_file.exists() else folder.config_file
    return RunSummary(
        path=str(folder.path),
        env=str(config.get("env", "reward function" if config.get("algo") == "function" else "?")),
        algo=str(config.get("algo", "?")),
        seed=seed if isinstance(seed, int) else None,
        generation=row["generation"] + 1 if row else 0,
        env_steps=int(_number(row.get("env_steps")) or 0),
        best=_number(best),
        status=status,
        reason=reason or None,
        age=max(0.0, now - started),
        idle=max(0.0, now - moved.stat().st_mtime),
    )


def last_row(journal: Path) -> dict[str, Any]:
    """The last whole row of a journal, or nothing."""
    try:
        with open_plain(journal) as file:
            file.seek(max(0, journal.stat().st_size - TAIL))
            lines = file.read().splitlines()
    except (OSError, ValueError):
        return {}
    for line in reversed(lines):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and type(row.get("generation")) is int:
            return row
    return {}


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    return value if isinstance(value, int | float) and math.isfinite(value) else None
