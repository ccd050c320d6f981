"""Mistakes put in on purpose: the simulation must find each of them."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import safetensors.numpy

from esker.algorithms.facts import Facts
from esker.algorithms.snapshot import Snapshot
from esker.cluster.replicated import ReplicatedFolder
from esker.engines.node import NodeEngine
from esker.engines.packing import unpack
from esker.engines.ray import RayEngine
from esker.runs import checkpoints
from esker.runs.facts import to_bytes
from esker.runs.seals import seal_json
from esker.system import clock, disk


def acknowledged_before_fsync(path: Path, facts: Facts, run: str | None = None) -> None:
    disk.append(path, to_bytes(facts, run))


def without_epoch_check(self: NodeEngine, epoch: int) -> None:
    if epoch > self._epoch:
        self._close_plan()
        self._epoch, self._round = epoch, None
    self._heard_at = clock.monotonic()


def renamed_before_it_is_written(folder: Path, snapshot: Snapshot, beside: Any = (), run: str | None = None) -> Path:
    target = folder / checkpoints.folder_name(snapshot.generation)
    disk.make_folder(target)
    data = safetensors.numpy.save(snapshot.arrays)
    sums = {"generation": snapshot.generation, "sha256": hashlib.sha256(data).hexdigest(), "run": run}
    disk.write(target / "state.json", seal_json({**sums, **snapshot.values}).encode())
    disk.write(target / "state.safetensors", data)
    return target


def not_waiting_for_copies(self: ReplicatedFolder, others: list[Any]) -> bool:
    length = self.facts_file.stat().st_size
    for node in others[:2]:
        self._send(node, length)
    return True


def takes_late_answers(self: RayEngine, node: Any, call: Any, plan: Any) -> None:
    import ray

    node.call = None
    try:
        answer = ray.get(call)
    except ray.exceptions.RayError as error:
        self._lost(node, plan, type(error).__name__)
        return
    node.items.difference_update(answer.results.items.tolist())
    plan.add(unpack(answer.results))


def copied_in_any_order(path: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        disk.make_folder((path / name).parent)
        disk.write(path / name, data)


# How a mistake is put in, and from which seed on it is looked for.
MUTANTS: dict[str, tuple[Any, int]] = {
    "a commit is acknowledged before fsync": (partial(mock.patch, "esker.runs.folder.append", acknowledged_before_fsync), 1),
    "the epoch check is skipped": (partial(mock.patch.object, NodeEngine, "_obey", without_epoch_check), 6),
    "a snapshot is renamed before it is written": (
        partial(mock.patch.object, checkpoints, "write", renamed_before_it_is_written),
        130,
    ),
    "a commit does not wait for its copies": (
        partial(mock.patch.object, ReplicatedFolder, "_replicate", not_waiting_for_copies),
        1,
    ),
    "answers of an earlier round are taken": (partial(mock.patch.object, RayEngine, "_hear", takes_late_answers), 1),
    "the newest copy is not looked for": (
        partial(mock.patch, "esker.cluster.coordinator.newest_files", return_value=None),
        6,
    ),
    "a copied folder is not written in order": (partial(mock.patch, "esker.cluster.copies.write", copied_in_any_order), 19),
}
