"""Machines, actors and calls, as the directory of a simulated cluster knows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sim_disk import Disk
from sim_ray import Reference
from sim_world import Process


@dataclass(eq=False)
class Machine:
    """A computer; `id` changes when it joins the cluster anew. `cut`: nobody reaches it."""

    name: str
    disk: Disk
    skew: float = 0.0
    up: bool = True
    cut: bool = False
    joined: bool = True
    life: int = 0
    processes: list[Process] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"{self.name}{self.life:03d}"


@dataclass(eq=False)
class Actor:
    """An actor as the directory knows it."""

    kind: type[Any]
    arguments: bytes
    options: dict[str, Any]
    name: str | None
    node: str | None  # where it must be
    soft: bool
    process: Process | None = None
    instance: Any = None
    dead: bool = False
    lives: int = 0
    under_way: list[Call] = field(default_factory=list)

    @property
    def available(self) -> bool:
        return self.instance is not None and self.process is not None and self.process.alive

    @property
    def retries(self) -> bool:
        return self.options.get("max_task_retries", 0) != 0


@dataclass(eq=False)
class Call:
    """A method called from some process."""

    actor: Actor
    caller: Process
    method: str
    arguments: bytes
    reference: Reference
