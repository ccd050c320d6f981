"""What a coordinator that comes back finds: copies of its run that nodes hold, and a folder that a former life may have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from esker.engines.roster import NAMESPACE
from esker.errors import UsageError
from esker.runs.folder import RunFolder
from esker.system import clock

COPIES_WITHIN = 20.0  # seconds for engines to say what they hold


def copies_held(run: str) -> tuple[list[tuple[int, Any]], int]:
    """The copies that surviving engines of a run hold, by length; and a newer epoch than any that they have obeyed."""
    import ray

    held: list[tuple[int, Any]] = []
    epoch, until = clock.time_ns() // 1_000_000, clock.monotonic() + COPIES_WITHIN  # clocks may disagree: seconds would meet
    calls = {engine.stored.remote(): engine for engine in _engines(run)}
    while calls and clock.monotonic() < until:
        for call in ray.wait(list(calls), num_returns=1, timeout=1.0)[0]:
            engine = calls.pop(call)
            try:
                obeyed, length = ray.get(call)
            except ray.exceptions.ActorUnavailableError:  # for a moment, or until its node is known to be dead
                clock.sleep(0.5)
                calls[engine.stored.remote()] = engine
            except ray.exceptions.RayError:
                continue
            else:
                epoch = max(epoch, obeyed + 1)
                held.append((length, engine))
    return held, epoch


def _engines(run: str) -> Iterator[Any]:
    """The engines of a run on nodes that are alive."""
    import ray

    for node in ray.nodes():  # type: ignore[no-untyped-call]
        with contextlib.suppress(ValueError):  # it has none
            if node["Alive"]:
                yield ray.get_actor(f"{run}@{node['NodeID']}", namespace=NAMESPACE)


def newest_files(held: list[tuple[int, Any]], longer_than: int) -> dict[str, bytes] | None:
    """The files of the longest copy that can be had, if one has more facts than some number of bytes."""
    import ray

    for length, actor in sorted(held, key=lambda copy: copy[0], reverse=True):
        if length > longer_than:
            with contextlib.suppress(ray.exceptions.RayError):  # it was lost meanwhile
                return _fetch(actor)
    return None


def _fetch(engine: Any) -> dict[str, bytes]:
    """An engine's copy; one that is unavailable for a moment is asked again."""
    import ray

    until = clock.monotonic() + COPIES_WITHIN
    while True:
        try:
            files: dict[str, bytes] = ray.get(engine.fetch.remote(), timeout=60)
            return files
        except ray.exceptions.ActorUnavailableError:
            if clock.monotonic() > until:
                raise
            clock.sleep(0.5)


def lock(folder: RunFolder, patience: float = 20.0) -> None:
    """Claim the folder; whoever has it, as a former life that needs a moment to die, is waited for."""
    until = clock.monotonic() + patience
    while True:
        try:
            folder.lock()
            return
        except UsageError:
            if clock.monotonic() > until:
                raise
            clock.sleep(0.2)
