"""Ray as a module, as far as esker uses it: errors, references, handles. Calls go to the cluster of the present world."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from sim_world import Process, the


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.cause = cause


class RayActorError(RayError):
    pass


class ActorDiedError(RayActorError):
    pass


class ActorUnavailableError(RayActorError):
    pass


class ObjectLostError(RayError):
    pass


class GetTimeoutError(RayError, TimeoutError):
    pass


class Reference:
    """What a call will return, or an object that was put."""

    def __init__(self) -> None:
        self.value: bytes | None = None
        self.error: RayError | None = None
        self.owner: Process | None = None  # of an object that was put

    def __reduce__(self) -> Any:
        return _keep(self)

    @property
    def ready(self) -> bool:
        return self.value is not None or self.error is not None


class Handle:
    """An actor as a process holds it."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __reduce__(self) -> Any:
        return _keep(self)

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        actor = self._actor
        return types.SimpleNamespace(remote=lambda *arguments: the().cluster.call(actor, method, arguments))


class Affinity:
    """Ray's NodeAffinitySchedulingStrategy."""

    def __init__(self, node_id: str, soft: bool) -> None:
        self.node_id, self.soft = node_id, soft


def _kept(number: int) -> Any:
    return the().cluster.kept[number]


def _keep(thing: Any) -> Any:
    """How references and handles travel: as what they are."""
    kept = the().cluster.kept
    kept.append(thing)
    return _kept, (len(kept) - 1,)


def modules() -> dict[str, types.ModuleType]:
    """The modules that `import ray` finds: each call goes to the cluster of the present world."""
    ray, exceptions, util, strategies = (
        types.ModuleType(name) for name in ("ray", "ray.exceptions", "ray.util", "ray.util.scheduling_strategies")
    )
    errors = (RayError, RayTaskError, RayActorError, ActorDiedError, ActorUnavailableError, ObjectLostError)
    for kind in (*errors, GetTimeoutError):
        setattr(exceptions, kind.__name__, kind)
    calls: dict[str, Callable[..., Any]] = {
        "put": lambda value: the().cluster.put(value),
        "get": lambda reference, timeout=None: the().cluster.get(reference, timeout),
        "wait": lambda references, num_returns=1, timeout=None: the().cluster.wait(references, num_returns, timeout),
        "nodes": lambda: the().cluster.nodes(),
        "get_actor": lambda name, namespace: the().cluster.find(name),
        "kill": lambda handle, no_restart=True: the().cluster.kill(handle._actor),
        "get_runtime_context": lambda: the().cluster.context(),
        "remote": _remote,
    }
    for name, call in calls.items():
        setattr(ray, name, call)
    util.list_named_actors = lambda all_namespaces: the().cluster.names()  # type: ignore[attr-defined]
    strategies.NodeAffinitySchedulingStrategy = Affinity  # type: ignore[attr-defined]
    ray.exceptions, ray.util, util.scheduling_strategies = exceptions, util, strategies  # type: ignore[attr-defined]
    return {module.__name__: module for module in (ray, exceptions, util, strategies)}


def _remote(kind: type[Any]) -> Any:
    def options(**given: Any) -> Any:
        return types.SimpleNamespace(remote=lambda *arguments: the().cluster.make(kind, given, arguments))

    return types.SimpleNamespace(options=options)
