"""Episodes whose networks run in another process: a worker steps its slots and asks for the outputs of all of them.

The slots are those of every worker: normalisation, actions, returns and statistics are computed here. Inputs, outputs and
the members to load lie in memory that both processes share; a request and its reply are one byte or two in a pipe.
"""

from __future__ import annotations

import math
import mmap
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esker.noise.population import CENTER
from esker.noise.table import NoiseTable
from esker.policies.network import Batch, Inputs
from esker.tasks.episodes import Episodes, Slots
from esker.tasks.task import Board

ASKED, SERVED, LOADS = range(3)  # of a worker's header: the newest request, the newest reply, members to load before it
HEADER = 3
PAGE = 4096


class Desk(NamedTuple):
    """What one worker and the server share."""

    header: NDArray[np.int64]  # then the rows to load, then their members
    inputs: NDArray[Any]  # (slots, *shape)
    outputs: NDArray[np.float32]  # (slots, outputs)


@dataclass(frozen=True)
class Exchange:
    """Where the desks of all workers lie, and the pipes' ends that workers use; descriptors are inherited."""

    memory: int
    requests: int
    wakes: tuple[int, ...]  # of each worker
    slots: int
    shape: tuple[int, ...]
    images: bool
    outputs: int

    @property
    def descriptors(self) -> list[int]:
        """What a worker inherits."""
        return [self.memory, self.requests, *self.wakes]

    @property
    def _sizes(self) -> tuple[int, int, int]:
        """Bytes of a desk's header, inputs and outputs, each in whole pages."""
        numbers = 1 if self.images else 4
        sizes = ((HEADER + 2 * self.slots) * 8, self.slots * math.prod(self.shape) * numbers, self.slots * self.outputs * 4)
        header, inputs, outputs = (-(-size // PAGE) * PAGE for size in sizes)
        return header, inputs, outputs

    @property
    def size(self) -> int:
        """Bytes of all desks."""
        return sum(self._sizes) * len(self.wakes)

    def desk(self, mapped: mmap.mmap, worker: int) -> Desk:
        """A worker's part of the mapped memory."""
        header, inputs, _ = self._sizes
        at = worker * sum(self._sizes)
        kind = np.uint8 if self.images else np.float32
        count = self.slots * math.prod(self.shape)
        return Desk(
            np.frombuffer(mapped, np.int64, HEADER + 2 * self.slots, at),
            np.frombuffer(mapped, kind, count, at + header).reshape(self.slots, *self.shape),
            np.frombuffer(mapped, np.float32, self.slots * self.outputs, at + header + inputs).reshape(self.slots, -1),
        )


class ServedRows:
    """The rows of a network that runs elsewhere; the server's rows never move, so slots keep the number of theirs."""

    parameters: Batch = np.zeros((0, 0), dtype=np.float32)

    def __init__(self, exchange: Exchange, worker: int) -> None:
        self.requests, self.wake = exchange.requests, exchange.wakes[worker]
        self.name = worker.to_bytes(2, "little")
        self.desk = exchange.desk(mmap.mmap(exchange.memory, exchange.size), worker)
        self.places: NDArray[np.int64] = np.arange(exchange.slots)
        self.loads: dict[int, int] = {}

    def load(self, row: int, member: int | None) -> None:
        """Let a row begin as a member, or as the centre, with the next request."""
        self.loads[int(self.places[row])] = CENTER if member is None else member

    def start(self, row: int) -> None:
        """Loading a row starts it."""

    def move(self, source: int, target: int) -> None:
        """Two rows change places."""
        self.places[[source, target]] = self.places[[target, source]]

    def forward(self, inputs: Inputs) -> Batch:
        """Outputs of the first n rows; waits for the server."""
        header, places = self.desk.header, self.places[: len(inputs)]
        self.desk.inputs[places] = inputs
        count = len(self.loads)
        header[HEADER : HEADER + count] = list(self.loads)
        header[HEADER + count : HEADER + 2 * count] = list(self.loads.values())
        header[LOADS] = count
        self.loads.clear()
        header[ASKED] += 1
        os.write(self.requests, self.name)
        while header[SERVED] != header[ASKED]:  # a reply to a worker that was replaced may come first
            os.read(self.wake, 16)
        return self.desk.outputs[places]


class ServedSlots(Slots):
    """Slots whose rows are served."""

    rows: ServedRows

    def __init__(self, task: Episodes, rows: ServedRows, table: NoiseTable | None, board: Board) -> None:
        self._served = rows
        super().__init__(task, task.noise(table), board)

    def _open_rows(self) -> Any:
        return self._served

    def _load(self, row: int, member: int | None) -> None:
        self.rows.load(row, member)


@dataclass(frozen=True)
class ServedEpisodes:
    """Episodes of one worker whose network runs elsewhere."""

    episodes: Episodes
    exchange: Exchange
    worker: int = 0

    @property
    def slots(self) -> int:
        """How many episodes a worker has under way."""
        return self.exchange.slots

    def describe(self, generation: int, item: int) -> str:
        """Environment, member and seed of an item."""
        return self.episodes.describe(generation, item)

    def open(self, table: NoiseTable | None, board: Board) -> ServedSlots:
        """Make the slots of one worker."""
        return ServedSlots(self.episodes, ServedRows(self.exchange, self.worker), table, board)
