"""A virtual clock, and the threads and processes that live by it: one runs at a time, and a seed says which.

A thread gives its turn away where production code calls `esker.system.clock`, `esker.system.disk` or Ray; there its
process may also be killed.
"""

from __future__ import annotations

import heapq
import itertools
import math
import queue
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import greenlet

MOST_STEPS = 60_000  # of one schedule; more is a loop that never waits
SWITCH = 0.08  # probability that another thread goes first at a point where this one could go on
EPOCH = 1_700_000_000.0  # the time of day at which every schedule begins


class Killed(BaseException):
    """This process is gone: whatever it still does has no effect."""


class Stuck(AssertionError):
    """Nobody can go on, or somebody goes on without end."""


@dataclass(eq=False)
class Process:
    """What lives and dies together; `doom` is the step at which it is killed."""

    name: str
    machine: Any
    alive: bool = True
    steps: int = 0
    doom: int | None = None
    frozen_until: float = 0.0
    at_death: list[Callable[[], None]] = field(default_factory=list)


def never() -> bool:
    """What only time ends."""
    return False


class Strand:
    """A simulated thread: a greenlet, since a turn must cost microseconds on a busy machine too."""

    def __init__(self, process: Process, live: Callable[[Strand], None] | None) -> None:
        self.process = process
        self.greenlet = greenlet.getcurrent() if live is None else greenlet.greenlet(lambda: live(self), _root())
        self.ready: Callable[[], bool] | None = None
        self.until = math.inf
        self.done = False


def _root() -> greenlet.greenlet:
    """The greenlet of the real thread, to which control returns when another one ends."""
    root = greenlet.getcurrent()
    while root.parent is not None:
        root = root.parent
    return root


class World:
    """The clock, who is waiting for what, and the dice."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.now = 0.0
        self.steps = 0
        self.crashes: list[tuple[str, BaseException]] = []
        self.trace: list[str] = []
        self.disturbed = True  # faults may still happen
        self._strands: list[Strand] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self._main = Strand(Process("main", None), None)
        self.current = self._main
        self.stuck: str | None = None
        self.cluster: Any = None

    def say(self, text: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now:9.3f} {text}")

    def spawn(self, process: Process, target: Callable[[], None]) -> Strand:
        """A new thread of a process."""

        def live(strand: Strand) -> None:
            try:
                if process.alive:
                    target()
            except Killed:
                pass
            except BaseException as error:  # a thread's exception ends the thread, in production too
                self.crashes.append((process.name, error))
            strand.done = True
            self._strands.remove(strand)
            self.current = self._choose()

        strand = Strand(process, live)
        self._strands.append(strand)
        return strand

    def at(self, delay: float, action: Callable[[], None]) -> None:
        """Do something later; it must not wait."""
        heapq.heappush(self._events, (self.now + delay, next(self._number), action))

    def step(self) -> None:
        """A point at which the present process may be killed, or another thread may go first."""
        process = self.current.process
        if not process.alive:
            raise Killed
        self.steps += 1
        process.steps += 1
        if self.steps > MOST_STEPS and self.stuck is None:
            self.stuck = f"{MOST_STEPS:,} steps were not enough; {process.name} was running"
        if self.stuck is not None and process is not self._main.process:
            self.kill(process)
        if process.doom is not None and process.steps >= process.doom:
            self.say(f"{process.name} is killed at its step {process.steps}")
            self.kill(process)
        if not process.alive:
            raise Killed
        if self.dice.random() < SWITCH:
            self.wait(lambda: True)

    def wait(self, ready: Callable[[], bool], timeout: float | None = None) -> bool:
        """Let others go on until something is so, or for some seconds; returns whether it is."""
        me = self.current
        me.ready, me.until = ready, math.inf if timeout is None else self.now + max(timeout, 0.0)
        self._pass_on(me)
        if not me.process.alive:
            raise Killed
        return ready()

    def kill(self, process: Process) -> None:
        """End a process at once: its threads never get another turn that counts."""
        if process.alive:
            process.alive = False
            for action in process.at_death:
                action()

    def _pass_on(self, me: Strand) -> None:
        self.current = self._choose()
        while self.current is not me:  # where a thread ends, control comes back to the main one
            self.current.greenlet.switch()

    def _choose(self) -> Strand:
        """Whoever can go on, by lot; the main thread only when nobody else can; otherwise time passes until one can."""
        while True:
            now, able, soonest = self.now, [], self._events[0][0] if self._events else math.inf
            for strand in self._strands:
                frozen, ready = strand.process.frozen_until, strand.ready
                if not strand.process.alive:
                    able.append(strand)
                elif frozen > now:
                    soonest = min(soonest, frozen)
                elif ready is None or strand.until <= now or (ready is not never and ready()):
                    able.append(strand)
                elif strand.until < soonest:
                    soonest = strand.until
            if able:
                return able[0] if len(able) == 1 else able[self.dice.randrange(len(able))]
            main = self._main
            if main.ready is None or main.until <= now or main.ready():
                return main
            self._advance(min(soonest, main.until))

    def _advance(self, moment: float) -> None:
        if moment == math.inf:
            self.stuck = self.stuck or "everybody waits for ever"
            self._main.ready = None
            return
        self.now = max(self.now, moment)
        while self._events and self._events[0][0] <= self.now:
            heapq.heappop(self._events)[2]()

    def run(self, finished: Callable[[], bool], longest: float) -> None:
        """Let everybody live until it is finished; then end everything."""
        self.wait(lambda: finished() or self.stuck is not None, longest)
        if self.stuck is None and not finished():
            self.stuck = f"it was not finished after {longest:g} s"
        for strand in list(self._strands):
            self.kill(strand.process)
        self.wait(lambda: not self._strands)


_world: World | None = None


def the() -> World:
    """The world that is being simulated."""
    assert _world is not None
    return _world


@contextmanager
def inhabited(world: World) -> Iterator[World]:
    """Make a world the present one."""
    global _world
    assert _world is None
    _world = world
    try:
        yield world
    finally:
        _world = None


# What `esker.system.clock` has


def monotonic() -> float:
    return the().now


def time() -> float:
    world = the()
    return EPOCH + world.now + getattr(world.current.process.machine, "skew", 0.0)


def time_ns() -> int:
    return int(time() * 1e9)


def sleep(seconds: float) -> None:
    the().step()
    the().wait(never, seconds)


def exit_process(status: int) -> None:
    world = the()
    world.say(f"{world.current.process.name} exits")
    world.kill(world.current.process)
    raise Killed


class Lock:
    """A lock, or what a condition needs of one: its holder may take it again."""

    def __init__(self) -> None:
        self._holder: Strand | None = None
        self._depth = 0

    def __enter__(self) -> Lock:
        world = the()
        world.step()
        if self._holder is not world.current:
            if self._holder is not None:
                world.wait(lambda: self._holder is None)
            self._holder = world.current
        self._depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._holder = None


class Condition(Lock):
    """Waits are ended by a notification or by time, never by what is waited for itself."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[list[bool]] = []

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        world, end = the(), None if timeout is None else the().now + timeout
        while not (result := predicate()):
            left = None if end is None else end - world.now
            if left is not None and left <= 0:
                break
            heard = [False]
            self._waiting.append(heard)
            depth, self._depth, self._holder = self._depth, 0, None
            world.wait(lambda heard=heard: heard[0], left)  # type: ignore[misc]
            if self._holder is not None:
                world.wait(lambda: self._holder is None)
            self._depth, self._holder = depth, world.current
        return result

    def notify_all(self) -> None:
        for heard in self._waiting:
            heard[0] = True
        self._waiting.clear()


class Event:
    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        the().step()
        return self._set or the().wait(lambda: self._set, timeout)


class Thread:
    def __init__(self, target: Callable[[], None], daemon: bool = True, name: str = "") -> None:
        self._target = target
        self._strand: Strand | None = None

    def start(self) -> None:
        the().step()
        self._strand = the().spawn(the().current.process, self._target)

    def join(self, timeout: float | None = None) -> None:
        strand = self._strand
        the().step()
        if strand is not None:
            the().wait(lambda: strand.done, timeout)


class SimpleQueue:
    def __init__(self) -> None:
        self._items: list[Any] = []

    def put(self, item: Any) -> None:
        self._items.append(item)

    def empty(self) -> bool:
        return not self._items

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        the().step()
        if not self._items and block:
            the().wait(lambda: bool(self._items), timeout)
        if not self._items:
            raise queue.Empty
        return self._items.pop(0)

    def __class_getitem__(cls, item: Any) -> Any:
        return cls
