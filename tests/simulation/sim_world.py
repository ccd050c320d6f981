"""A virtual clock, and the threads and processes that live by it: one runs at a time, and a seed says which.

A thread gives its turn away where production code calls `esker.system.clock`, `esker.system.disk` or Ray; there its
process may also be killed.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import greenlet

MOST_STEPS = 60_000  # of one schedule; more is a loop that never waits
SWITCH = 0.08  # probability that another thread goes first at a point where this one could go on


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
