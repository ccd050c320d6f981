"""The viewer: starts a coordinator or finds one, and shows its progress. It can die; the run continues."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from esker.algorithms.observer import Observer
from esker.cluster import copies
from esker.cluster.coordinator import Coordinator, End, News, Request, Summary
from esker.cluster.recovery import lock
from esker.engines.roster import NAMESPACE
from esker.errors import RunError, UsageError, nearest
from esker.runs.folder import RunFolder
from esker.system import clock, disk

PATIENCE = 5.0  # seconds that a coordinator holds an answer back when nothing happens
UNANSWERED = 10.0  # and seconds more after which it counts as gone


def launch(request: Request, files: dict[str, bytes], place: Any, gpus: float = 0) -> Any:
    """Start a run's coordinator. A name that is active already raises UsageError."""
    import ray

    make_way(request.name)
    options: dict[str, Any] = {
        "name": request.name,
        "namespace": NAMESPACE,
        "lifetime": "detached",
        "max_restarts": -1,
        "max_task_retries": -1,
        "max_concurrency": 64,
        "num_cpus": 0,
        "num_gpus": gpus or None,
        "scheduling_strategy": place,
    }
    coordinator: Any = ray.remote(Coordinator).options(**options).remote(request)
    coordinator.start_from.remote(files)
    return coordinator


def find(name: str) -> Any:
    """The coordinator of an active run, by its name or run folder. An unknown one raises UsageError."""
    import ray

    wanted, active = Path(name).name, active_names()
    if wanted not in active:
        known = f"; active: {', '.join(active)}" if active else "; no run is active"
        raise UsageError(f"no run named {wanted!r} is active on this cluster{nearest(wanted, active) or known}")
    return ray.get_actor(wanted, namespace=NAMESPACE)


def active_names() -> list[str]:
    """The runs that have a coordinator."""
    import ray

    actors = ray.util.list_named_actors(all_namespaces=True)
    return sorted(a["name"] for a in actors if a["namespace"] == NAMESPACE and "@" not in a["name"])


def summaries() -> list[Summary]:
    """Every active run in one line; those whose coordinator does not respond are left out."""
    import ray

    calls: list[Any] = [ray.get_actor(name, namespace=NAMESPACE).summary.remote() for name in active_names()]
    found: list[Summary] = []
    for call in calls:
        with contextlib.suppress(ray.exceptions.RayError):
            found.append(ray.get(call, timeout=10))
    return found


def watch(
    coordinator: Any,
    name: str,
    path: Path,
    observer: Observer,
    first: int = 0,
    send_files: Callable[[], object] = lambda: None,
) -> End:
    """Show a run to an observer from a generation on, until it ends; earlier ones are in its folder. Returns how it ended.

    `send_files` is called again for a coordinator that died before it committed anything: its successor may have no folder.
    """
    config = None
    while config is None:
        config = _await(partial(coordinator.config.remote, PATIENCE), name, observer)
        if config is None:
            if end := _await(partial(coordinator.follow.remote, 0, 0, 0, 0.0), name, observer).end:
                return end
            send_files()
    folder = RunFolder(path)
    observer.begin(config, folder, folder.rows()[:first])
    status = "the viewer left; the run continues"
    try:
        for news in _news(coordinator, name, first, observer, send_files):
            for text in news.notes:
                observer.note(text)
            for row in news.rows:
                observer.generation(row)
            if news.end is not None:
                status = f"finished: {news.end.text}" if news.end.kind == "finished" else news.end.kind
                return news.end
    finally:
        observer.end(status)
    raise AssertionError("news end with the run")


def path_of(coordinator: Any, name: str) -> Path:
    """Where a run's folder is, on its coordinator's node."""
    return Path(_ask(coordinator.summary.remote(), name).path)


def stop(coordinator: Any, name: str) -> End:
    """Stop a run and wait until it has saved."""
    _ask(coordinator.stop.remote(), name)
    while True:
        news: News = _ask(coordinator.follow.remote(1 << 60, 0, 1 << 60, PATIENCE), name)
        if news.end is not None:
            return news.end


def bring_home(coordinator: Any, name: str, path: Path) -> bool:
    """Copy the run folder here unless this machine has it, as with shared storage. Returns whether it was copied.

    A coordinator that was restarted on a machine without the folder raises RunError.
    """
    length = _ask(coordinator.facts_length.remote(), name)
    here = copies.facts_length(path)
    if length is not None and here is not None and here >= length:
        return False
    files: dict[str, bytes] = {} if length is None else _ask(coordinator.files.remote(), name)
    if length is None or len(files.get("facts", b"")) < length:  # it was restarted, perhaps between the two questions
        raise RunError(
            f"the folder of {name} is on the machine where its coordinator was, which is gone, and {str(path)!r} is older; "
            f"evaluate what it lacks again with: esker resume {path}"
        )
    disk.make_folder(path)
    folder = RunFolder(path)
    lock(folder)  # `esker train` and `esker stop` may both be at it
    try:
        copies.write(path, files)
    finally:
        folder.unlock()
    return True


def make_way(name: str) -> None:
    """Make room for a new coordinator: one whose run has ended is removed, an active one raises UsageError."""
    import ray

    if name not in active_names():
        return
    former = ray.get_actor(name, namespace=NAMESPACE)
    if _ask(former.summary.remote(), name).status in ("starting", "running", "stopping"):
        raise UsageError(
            f"a run named {name!r} is active on this cluster; watch it with `esker attach {name}`, "
            "or choose another --run-dir"
        )
    ray.kill(former, no_restart=True)
    until = clock.monotonic() + 30
    while name in active_names() and clock.monotonic() < until:
        clock.sleep(0.1)


def _news(
    coordinator: Any, name: str, generation: int, observer: Observer, send_files: Callable[[], object]
) -> Iterator[News]:
    first, life, notes = generation, 0, 0
    while True:
        news: News = _await(partial(coordinator.follow.remote, generation, life, notes, PATIENCE), name, observer)
        if life and news.life != life:
            observer.note(
                f"the coordinator died and was restarted; it continues at generation {generation + len(news.rows)}"
            )
            if generation == first:
                send_files()
        notes = len(news.notes) + (notes if news.life == life else 0)
        life = news.life
        generation += len(news.rows)
        yield news


def _await(ask: Callable[[], Any], name: str, observer: Observer) -> Any:
    """An answer, however long it takes: a busy machine restarts actors slowly."""
    import ray

    away = False
    while True:
        try:
            return ray.get(ask(), timeout=PATIENCE + UNANSWERED)
        except (ray.exceptions.GetTimeoutError, ray.exceptions.ActorUnavailableError):
            if not away:
                observer.note("the coordinator does not respond: waiting for it to come back")
            away = True
        except ray.exceptions.RayError as error:
            raise _gone(name) from error


def _ask(call: Any, name: str) -> Any:
    import ray

    while True:
        try:
            return ray.get(call, timeout=60)
        except ray.exceptions.ActorUnavailableError:
            continue
        except ray.exceptions.GetTimeoutError as error:
            raise RunError(f"the coordinator of {name} has not responded for 60 s; try again later") from error
        except ray.exceptions.RayActorError as error:
            raise _gone(name) from error


def _gone(name: str) -> RunError:
    return RunError(f"the coordinator of {name} is gone; continue with: esker resume RUN_DIR")


def here() -> Any:
    """This machine and no other."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


def away_from_the_head() -> Any:
    """Prefer a node that is not the head, so that a head that restarts does not take the coordinator with it."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    others = [node["NodeID"] for node in nodes if "node:__internal_head__" not in node["Resources"]]
    return NodeAffinitySchedulingStrategy(others[0], soft=True) if others else "DEFAULT"
