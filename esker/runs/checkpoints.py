"""Checkpoints: snapshots of a state as safetensors and JSON, checked when read, never pickle."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from esker.algorithms.snapshot import Snapshot
from esker.runs.files import read_plain, read_small, write_whole
from esker.runs.seals import open_json, seal_json
from esker.system import disk


class DamagedCheckpoint(Exception):
    """A snapshot that cannot be trusted; facts and an older one give the same state."""


def folder_name(generation: int) -> str:
    """The name of a generation's folder."""
    return f"{generation:06d}"


def write(folder: Path, snapshot: Snapshot, beside: Iterable[Path] = (), run: str | None = None) -> Path:
    """Write a snapshot, whole or not at all; copies of the files `beside` it let the folder be used on its own."""
    target = folder / folder_name(snapshot.generation)
    building = folder / f".{target.name}-new-{os.getpid()}"
    disk.remove_tree(building)
    disk.make_folder(building)
    try:
        data = safetensors.numpy.save({name: np.ascontiguousarray(a) for name, a in snapshot.arrays.items()})
        disk.write(building / "state.safetensors", data, durable=True)
        identity = {} if run is None else {"run": run}
        sums = {"generation": snapshot.generation, "sha256": hashlib.sha256(data).hexdigest(), **identity}
        disk.write(building / "state.json", seal_json({**sums, **snapshot.values}).encode(), durable=True)
        for file in beside:
            disk.write(building / file.name, file.read_bytes())
        _put_in_place(building, target)
    except OSError:
        disk.remove_tree(building)
        raise
    return target


def _put_in_place(building: Path, target: Path) -> None:
    """Rename, with an older folder of that name aside until the new one is there; `tidy` puts it back after a crash."""
    old = target.with_name(f".{target.name}-old")
    disk.remove_tree(old)
    with contextlib.suppress(FileNotFoundError):
        disk.rename(target, old)
    disk.rename(building, target)
    disk.remove_tree(old)


def remove(folder: Path, generation: int) -> None:
    """Remove a snapshot: under its name it is whole until it is gone, also for whoever looks after a crash."""
    path = folder / folder_name(generation)
    leaving = folder / f".{path.name}-new-{os.getpid()}"  # `tidy` removes what a crash leaves of it
    with contextlib.suppress(OSError):  # kept longer than asked for: no reason to stop
        disk.rename(path, leaving)
        disk.remove_tree(leaving)


def tidy(folder: Path) -> None:
    """Remove what crashes left, and put back a snapshot that was being replaced. The caller must hold the run's lock."""
    for path in sorted(folder.glob(".[0-9]*-*")) if folder.is_dir() else []:
        found = re.fullmatch(r"\.(\d+)-(old|new-\d+|\d+)", path.name)
        if found is None or path.is_symlink():
            continue
        if found[2] == "old" and not (folder / found[1]).exists():
            disk.rename(path, folder / found[1])
        else:
            disk.remove_tree(path)


def read(folder: Path, run: str | None = None) -> Snapshot:
    """Read a snapshot. Anything missing, cut, altered, misplaced or of another run raises DamagedCheckpoint."""
    try:
        values = open_json(read_small(folder / "state.json"), unsealed=("generation",))
        data = read_plain(folder / "state.safetensors")
        if hashlib.sha256(data).hexdigest() != values.pop("sha256"):
            raise DamagedCheckpoint(f"{folder.name}: the checksum does not match")
        generation, owner = values.pop("generation"), values.pop("run", None)
        if not isinstance(generation, int) or (folder.name.isdecimal() and int(folder.name) != generation):
            raise DamagedCheckpoint(f"{folder.name}: it holds generation {generation!r}")
        if run is not None and owner not in (None, run):
            raise DamagedCheckpoint(f"{folder.name}: it is of another run")
        return Snapshot(generation, safetensors.numpy.load(data), values)
    except (OSError, ValueError, KeyError, AttributeError, safetensors.SafetensorError) as error:
        raise DamagedCheckpoint(f"{folder.name}: {error}") from error


def generations(folder: Path) -> list[int]:
    """The generations that have a snapshot, ascending."""
    return sorted(int(path.name) for path in folder.glob("[0-9]*") if path.name.isdecimal() and path.is_dir())


def point(file: Path, generation: int) -> None:
    """Make `best` or `latest` name a folder, atomically."""
    write_whole(file, folder_name(generation) + "\n")


def pointed(file: Path) -> int | None:
    """The generation that `best` or `latest` names."""
    try:
        text = read_small(file).strip()
    except (OSError, ValueError):
        return None
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
