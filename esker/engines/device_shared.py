"""One device for several runs: each has a block of the slots, and waits in its own thread for its generations.

The thread that opened the device steps it, with whatever is there to step: a run whose generation is complete computes its
update while the others' episodes go on.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from esker.engines.plan import Plan
from esker.errors import RunError
from esker.tasks.device_slots import DeviceSlots
from esker.tasks.task import Job, Result

MOST = 32_768  # slots of all runs together, unless more are requested


@dataclass
class Order:
    """A generation that a run wants evaluated."""

    job: Job
    plan: Plan
    done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None

    def end(self, error: BaseException | None = None) -> None:
        """Let the run continue, or fail."""
        self.error = error
        self.done.set()


class SharedDevice:
    """The slots of one device and the runs that share them."""

    def __init__(self, slots: DeviceSlots) -> None:
        self.slots = slots
        self.engines = [BlockEngine(self, block) for block in range(len(slots.tasks))]
        self._sent: SimpleQueue[tuple[int, Order | None]] = SimpleQueue()  # None: the run has ended
        self._orders: dict[int, Order] = {}
        self._hungry: set[int] = set()  # runs that may have items to start
        self._lock = threading.Lock()
        self._ended: BaseException | None = None

    def send(self, block: int, order: Order | None) -> None:
        """From a run's thread: a generation to evaluate; None: there are no more."""
        with self._lock:
            if self._ended is None:
                self._sent.put((block, order))
                return
        if order is not None:
            order.end(self._ended)

    def serve(self) -> None:
        """Step the device until every run has ended. What goes wrong here, an interrupt too, reaches all runs."""
        left = set(range(len(self.engines)))
        try:
            with self.slots.on_device():
                while left:
                    self._receive(left)
                    self._fill()
                    if self.slots.busy:
                        for block, results in self.slots.step().items():
                            self._give(block, results)
        except BaseException as error:
            self._end(error)
            raise

    def _receive(self, left: set[int]) -> None:
        """Take in what runs sent; wait for something where nothing is under way."""
        wait = not self._orders
        while True:
            try:
                block, order = self._sent.get(block=wait)
            except Empty:
                return
            wait = False
            if order is None:
                left.discard(block)
                continue
            self.slots.begin(block, order.job)
            self._orders[block] = order
            self._hungry.add(block)

    def _fill(self) -> None:
        """Start items of runs that have some in rows that are free."""
        if not self._hungry:
            return
        wanted = {}
        for block in sorted(self._hungry):
            if items := self._orders[block].plan.take(len(self.slots.free(block))):
                wanted[block] = items
        self._hungry.clear()
        if wanted:
            self.slots.start(wanted)

    def _give(self, block: int, results: Sequence[Result]) -> None:
        """Results of a run; the plan says whether its generation is complete."""
        order = self._orders[block]
        try:
            order.plan.add(results)
        except RunError as error:
            self.slots.drop(block)
            self._orders.pop(block).end(error)
            return
        if order.plan.complete is None:
            self._hungry.add(block)
            return
        order.plan.dropped_steps += self.slots.drop(block)
        self._orders.pop(block).end()

    def _end(self, error: BaseException) -> None:
        with self._lock:
            self._ended = error
        while not self._sent.empty():
            _, order = self._sent.get()
            if order is not None:
                order.end(error)
        for order in self._orders.values():
            order.end(error)


class BlockEngine:
    """The engine of one of the runs."""

    def __init__(self, device: SharedDevice, block: int) -> None:
        self._device, self._block = device, block

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Wait until the device has evaluated the plan's items."""
        order = Order(job, plan)
        self._device.send(self._block, order)
        order.done.wait()
        if order.error is not None:
            raise order.error

    def close(self) -> None:
        """The run needs the device no longer."""
        self._device.send(self._block, None)
