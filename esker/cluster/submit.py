"""From a run folder to a run on the cluster, watched to its end."""

from __future__ import annotations

import sys
import zlib
from functools import partial
from typing import Any

import cloudpickle

from esker.algorithms import registry
from esker.algorithms.observer import Observer
from esker.cluster import copies, viewer
from esker.cluster.coordinator import Request
from esker.errors import RunError, UsageError
from esker.runs.folder import RunFolder

STAYS_HERE = (
    "run folder and replay are on this machine only, and the coordinator stays here: without it the run stops, "
    "and `esker resume` continues it when the machine is back"
)
# Ray keeps what a coordinator is made of for its restarts, up to 100 kB; beyond that it would be lost with its starter.
MOST_PACKED = 90_000  # bytes


def pack(environment: Any) -> bytes:
    """An environment, or what takes its place, as a coordinator is given it. Raises whatever pickling raises."""
    return zlib.compress(cloudpickle.dumps(environment))


def run_on_cluster(folder: RunFolder, environment: Any, observer: Observer, notices: list[str]) -> str:
    """Start a coordinator on this folder and watch it; returns why the run ended.

    `environment` may be packed already. A run that failed raises RunError, one that was stopped KeyboardInterrupt, a
    wrong request UsageError.
    """
    name, path = folder.path.resolve().name, folder.path.resolve()
    algorithm, config = registry.find(folder.algo), folder.config(registry.options_of)
    notices = notices if algorithm.commits_facts else [*notices, STAYS_HERE]
    packed = environment if isinstance(environment, bytes) else pack(environment)
    request = Request(name, str(path), packed, list(sys.path), notices)
    first = len(folder.rows())
    files = copies.essentials(folder) if algorithm.commits_facts else {}
    if algorithm.commits_facts:
        coordinator = viewer.launch(request, files, viewer.away_from_the_head())
    else:  # its replay is a large file: the coordinator goes to where the folder is
        learns = config.device != "cpu" and algorithm.workers(config).learns_in_loop
        coordinator = viewer.launch(request, files, viewer.here(), gpus=1.0 if learns else 0.0)
    try:
        end = viewer.watch(coordinator, name, folder.path, observer, first, partial(coordinator.start_from.remote, files))
    except KeyboardInterrupt:
        end = viewer.stop(coordinator, name)
    try:
        viewer.bring_home(coordinator, name, path)
    finally:  # why a run ended matters more than why its folder was not copied
        if end.kind == "failed":
            raise RunError(end.text)
        if end.kind == "refused":
            raise UsageError(end.text)
        if end.kind == "interrupted":
            raise KeyboardInterrupt(end.text)
    return end.text
