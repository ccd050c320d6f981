"""What `esker.system.clock` has, on the virtual clock."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from sim_world import Killed, Strand, never, the

EPOCH = 1_700_000_000.0  # the time of day at which every schedule begins


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
