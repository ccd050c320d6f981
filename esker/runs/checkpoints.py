"""Checkpoints: snapshots of a state as safetensors and JSON, checked when read, never pickle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy


class DamagedCheckpoint(Exception):
    """A snapshot that cannot be trusted; facts and an older one give the same state."""


@dataclass(frozen=True)
class Snapshot:
    """A state, ready to run `generation`: arrays and plain values."""

    generation: int
    arrays: dict[str, np.ndarray]
    values: dict[str, Any]


def folder_name(generation: int) -> str:
    """The name of a generation's folder."""
    return f"{generation:06d}"


def write(folder: Path, snapshot: Snapshot, beside: Iterable[Path] = ()) -> Path:
    """Write a snapshot, whole or not at all; copies of the files `beside` it let the folder be used on its own."""
    target = folder / folder_name(snapshot.generation)
    building = folder / f".{target.name}-{os.getpid()}"
    building.mkdir(parents=True, exist_ok=True)
    try:
        data = safetensors.numpy.save({name: np.ascontiguousarray(a) for name, a in snapshot.arrays.items()})
        (building / "state.safetensors").write_bytes(data)
        values = {"generation": snapshot.generation, "sha256": hashlib.sha256(data).hexdigest(), **snapshot.values}
        (building / "state.json").write_text(json.dumps(values, indent=1) + "\n")
        for file in beside:
            shutil.copyfile(file, building / file.name)
        shutil.rmtree(target, ignore_errors=True)
        building.rename(target)
    except OSError:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return target


def read(folder: Path) -> Snapshot:
    """Read a snapshot. Anything missing, cut or altered raises DamagedCheckpoint."""
    try:
        values = json.loads((folder / "state.json").read_text())
        data = (folder / "state.safetensors").read_bytes()
        if hashlib.sha256(data).hexdigest() != values.pop("sha256"):
            raise DamagedCheckpoint(f"{folder.name}: the checksum does not match")
        return Snapshot(values.pop("generation"), safetensors.numpy.load(data), values)
    except (OSError, ValueError, KeyError, AttributeError, safetensors.SafetensorError) as error:
        raise DamagedCheckpoint(f"{folder.name}: {error}") from error


def generations(folder: Path) -> list[int]:
    """The generations that have a snapshot, ascending."""
    return sorted(int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit() and path.is_dir())


def point(file: Path, generation: int) -> None:
    """Make `best` or `latest` name a folder, atomically."""
    temporary = file.with_name(f".{file.name}")
    temporary.write_text(folder_name(generation) + "\n")
    temporary.replace(file)


def pointed(file: Path) -> int | None:
    """The generation that `best` or `latest` names."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
