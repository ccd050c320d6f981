"""The server of policies: a thread that runs the networks of all workers' slots on one device.

Every worker has a group of rows with shapes that never change, so a member's bits depend neither on who else asks nor on
when. Replies to all requests that are there are launched before the first of them is waited for.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from esker.noise.device import DevicePopulation
from esker.noise.table import NoiseTable, anonymous_memory
from esker.policies.device import DeviceRows, open_rows
from esker.system.cuda_graph import Graphed
from esker.system.torch_threads import one_torch_thread
from esker.tasks.episodes import Episodes
from esker.tasks.served import ASKED, HEADER, LOADS, SERVED, Desk, Exchange
from esker.tasks.task import Job

STOP = 0xFFFF  # in place of a worker's number: the engine closes
BLOCK = 32  # rows are opened in whole blocks: then torch's activations give a member the same bits in every row


class PolicyServer:
    """Rows of policies for `workers` workers with `episodes.slots` each; `failed` is called if the thread ends."""

    def __init__(
        self, episodes: Episodes, table: NoiseTable | None, workers: int, device: str, failed: Callable[[], None]
    ) -> None:
        self.device, self._failed = torch.device(device), failed
        self.error: BaseException | None = None
        self.stream: Any = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        with contextlib.ExitStack() as opened:
            self._open(episodes, table, workers, opened)
            self._opened = opened.pop_all()  # what `close` undoes, in reverse

    def _open(self, episodes: Episodes, table: NoiseTable | None, workers: int, opened: contextlib.ExitStack) -> None:
        """Allocate everything and start the thread; what is raised on the way, out of memory say, leaves nothing open."""
        with self.on_device():
            noise = episodes.noise(table)
            self.population = DevicePopulation(noise, self.device)
            count = -(-episodes.slots // BLOCK) * BLOCK
            rows = [open_rows(episodes.network, noise, count, self.device) for _ in range(workers)]
        self.exchange, self._ears, self._bells = _exchange(episodes, workers)
        for descriptor in (*self.exchange.descriptors, self._ears, *self._bells):
            opened.callback(os.close, descriptor)
        self._memory = mmap.mmap(self.exchange.memory, self.exchange.size)
        pinned = self._pin(opened)
        with self.on_device():
            desks = (self.exchange.desk(self._memory, worker) for worker in range(workers))
            self.groups = [Group(*pair, count, self.device, pinned) for pair in zip(rows, desks, strict=True)]
        thread = threading.Thread(target=self._run, name="policy server", daemon=True)
        thread.start()
        opened.callback(thread.join)
        opened.callback(os.write, self.exchange.requests, STOP.to_bytes(2, "little"))

    @contextlib.contextmanager
    def on_device(self) -> Iterator[None]:
        """Everything on one stream; on the CPU on one thread, as elsewhere."""
        where = torch.cuda.stream(self.stream) if self.stream else one_torch_thread()
        with torch.no_grad(), where:
            yield

    def begin(self, job: Job) -> None:
        """Start a generation; no worker may be asking."""
        with self.on_device():
            self.population.begin(job.population)
            for group in self.groups:
                group.rows.begin(0, self.population)

    def close(self) -> None:
        """End the thread and free what was shared."""
        self._opened.close()

    def _pin(self, opened: contextlib.ExitStack) -> bool:
        """Let the device copy from and to the shared memory by itself, where it can."""
        if self.stream is None:
            return False
        address, cuda = np.frombuffer(self._memory, np.uint8).ctypes.data, torch.cuda.cudart()  # type: ignore[no-untyped-call]
        if int(cuda.cudaHostRegister(address, self.exchange.size, 0)) != 0:
            return False
        opened.callback(cuda.cudaHostUnregister, address)
        return True

    def _run(self) -> None:
        try:
            with self.on_device():
                while STOP not in (asked := np.frombuffer(os.read(self._ears, 4096), np.uint16).tolist()):
                    self._serve(dict.fromkeys(asked))
        except BaseException as error:
            self.error = error
            self._failed()

    def _serve(self, workers: Any) -> None:
        """Reply to some workers."""
        launched = [worker for worker in workers if self.groups[worker].launch(self.population)]
        for worker in launched:
            self.groups[worker].finish()
            os.write(self._bells[worker], b".")


class Group:
    """The rows of one worker: inputs are copied to the device, outputs back."""

    def __init__(self, rows: DeviceRows, desk: Desk, count: int, device: torch.device, pinned: bool) -> None:
        self.rows, self.header, self.device, self.pinned = rows, desk.header, device, pinned
        self.given, self.taken = torch.from_numpy(desk.inputs), torch.from_numpy(desk.outputs)
        self.inputs = torch.zeros((count, *self.given.shape[1:]), dtype=self.given.dtype, device=device)
        self.done: Any = torch.cuda.Event(blocking=True) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._forward = Graphed(lambda: self.rows.forward(self.inputs.float()), device)

    @property
    def waiting(self) -> bool:
        """Whether the worker has asked and has no reply yet."""
        return bool(self.header[ASKED] != self.header[SERVED])

    def launch(self, population: DevicePopulation) -> bool:
        """Begin a reply, unless there is no request."""
        if not self.waiting:
            return False
        self.asked = int(self.header[ASKED])
        if count := int(self.header[LOADS]):
            rows, members = self.header[HEADER : HEADER + 2 * count].reshape(2, count).copy()
            self.rows.load(population, torch.from_numpy(rows).to(self.device), members)
        slots = len(self.given)
        self.inputs[:slots].copy_(self.given, non_blocking=self.pinned)
        self.taken.copy_(self._forward()[:slots], non_blocking=self.pinned)
        if self.done is not None:
            self.done.record()
        return True

    def finish(self) -> None:
        """Wait for the outputs."""
        if self.done is not None:
            self.done.synchronize()
        self.header[SERVED] = self.asked


def _exchange(episodes: Episodes, workers: int) -> tuple[Exchange, int, list[int]]:
    """New memory and pipes: what workers use, the end that requests are read from, and the ends that wake each worker."""
    network = episodes.network
    ears, requests = os.pipe()
    pipes = [os.pipe() for _ in range(workers)]
    wakes, bells = (tuple(ends) for ends in zip(*pipes, strict=True))
    laid = Exchange(-1, requests, wakes, episodes.slots, network.input_shape, episodes.images, network.outputs)
    return Exchange(**{**vars(laid), "memory": anonymous_memory(laid.size)}), ears, list(bells)
