"""A run folder's essentials as bytes: what is sent between nodes, so that a run can continue anywhere."""

from __future__ import annotations

import contextlib
from pathlib import Path

from esker.learners.rows import REPLAY_FILE
from esker.runs import checkpoints
from esker.runs.files import read_small, write_whole
from esker.runs.folder import RunFolder
from esker.runs.seals import open_json
from esker.system import disk

SMALL = 1 << 24  # bytes; larger files other than the facts are not essential


def essentials(folder: RunFolder, facts: bool = True) -> dict[str, bytes]:
    """Configuration, journal and other small files, the facts, and the snapshots that may be chosen as the best."""
    found = [path for path in folder.path.iterdir() if path.is_file() and path.stat().st_size < SMALL]
    newest = {checkpoints.pointed(pointer) for pointer in (folder.best_file, folder.latest_file)}
    for generation in sorted(number for number in newest | candidates(folder) if number is not None):
        found += sorted((folder.checkpoints / checkpoints.folder_name(generation)).glob("state.*"))
    skipped = {folder.facts_file.name, "lock", REPLAY_FILE}  # a hybrid's replay stays where its coordinator is
    files = {str(path.relative_to(folder.path)): path.read_bytes() for path in found if path.name not in skipped}
    if facts:
        files["facts"] = folder.facts_file.read_bytes() if folder.facts_file.exists() else b""
    return files


def candidates(folder: RunFolder) -> set[int | None]:
    """The generations whose snapshots compete when the run ends, by the newest snapshot that can be read."""
    for generation in reversed(checkpoints.generations(folder.checkpoints)):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            file = folder.checkpoints / checkpoints.folder_name(generation) / "state.json"
            values = open_json(read_small(file), unsealed=("generation",))
            progress = values.get("progress", values)
            return {progress.get("best_generation"), progress.get("steady_generation")}
    return set()


def write(path: Path, files: dict[str, bytes]) -> None:
    """Lay the files out as a run folder: facts first, and last the configuration, without which it is nobody's run yet.

    Facts that a former attempt left here, killed before the configuration was written, are kept where they go further.
    """
    order = {"facts": -1, "config.toml": 1}
    for name in sorted(files, key=lambda name: order.get(name, 0)):
        if name == "facts" and (path / name).is_file() and (path / name).read_bytes().startswith(files[name]):
            continue
        disk.make_folder((path / name).parent)
        write_whole(path / name, files[name], durable=True)


def facts_length(path: Path) -> int | None:
    """How many bytes of facts a folder has; None if it is not a run folder."""
    if not (path / "config.toml").is_file():
        return None
    facts = path / "facts"
    return facts.stat().st_size if facts.exists() else 0
