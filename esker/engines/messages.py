"""The messages between the local engine and its workers."""

from __future__ import annotations

from dataclasses import dataclass

from esker.engines.packing import Packed

BOARD_FIELDS = 3  # steps taken, item being stepped, messages sent to this worker
REPORT_EVERY = 16  # results that a worker gathers before it reports, while it has work left


@dataclass(frozen=True)
class Setup:
    """What a worker is started with; `task` is cloudpickled, and loaded only once `path` is in place."""

    path: list[str]
    task: bytes
    table: tuple[int, int] | None


@dataclass(frozen=True)
class Items:
    """More items of the current generation; `last`: as far as is known, there are no others."""

    items: list[int]
    last: bool


@dataclass(frozen=True)
class Drop:
    """The generation is complete: abandon what is under way."""


@dataclass(frozen=True)
class Ready:
    """The worker has opened its task."""


@dataclass(frozen=True)
class Report:
    """Results since the last report; `wants` asks for more items."""

    generation: int
    results: Packed
    wants: bool


@dataclass(frozen=True)
class Finished:
    """The worker has left the generation; `dropped` steps were abandoned."""

    generation: int
    dropped: int


@dataclass(frozen=True)
class Broken:
    """The worker could not open its task, or failed outside any environment."""

    message: str
    trace: str
