"""From a run folder to a run on the cluster, watched to its end."""

from __future__ import annotations

import sys
from functools import partial

import cloudpickle

from esker.algorithms import registry
from esker.algorithms.observer import Observer
from esker.cluster import copies, viewer
from esker.cluster.coordinator import Request
from esker.errors import RunError, UsageError
from esker.runs.folder import RunFolder
from esker.worlds.environments import Environment

STAYS_HERE = (
    "run folder and replay are on this machine only, and the coordinator stays here: without it the run stops, "
    "and `esker resume` continues it when the machine is back"
)


def run_on_cluster(folder: RunFolder, environment: Environment, observer: Observer, notices: list[str]) -> str:
    """Start a coordinator on this folder and watch it; returns why the run ended.

    A run that failed raises RunError, one that was stopped KeyboardInterrupt, a wrong request UsageError.
    """
    name, path = folder.path.resolve().name, folder.path.resolve()
    algorithm, config = registry.find(folder.algo), folder.config(registry.options_of)
    notices = notices if algorithm.commits_facts else [*notices, STAYS_HERE]
    request = Request(name, str(path), cloudpickle.dumps(environment), list(sys.path), notices)
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
