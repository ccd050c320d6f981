"""A simulated disk: real files in memory, and what a power failure would leave of them.

Names (creation, renaming, removal) reach the disk in their order, and all earlier ones with any fsync, as on journalling
file systems; the content of a file only with its own fsync. What had not been synced when the power fails is there,
partly there or not there.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import shutil
from pathlib import Path
from typing import IO, Any

from sim_world import never, the

_ticks = itertools.count(1_700_000_000_000_000_000, 1_000_000)  # times of change: the clock of a real disk is coarse


class Inode:
    """A file's content, as programs see it and as the disk has it."""

    def __init__(self) -> None:
        self.seen = b""
        self.synced = b""


Names = dict[str, Inode | None]  # by path below the root; None: a folder


class Disk:
    """One machine's disk, below a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.names: Names = {}
        self.synced: Names = {}
        self.since: list[Names] = []  # how the names were after each change since the last fsync
        self.full = False
        self.slow = 0.0  # probability that an fsync takes seconds
        root.mkdir(parents=True)

    # What `esker.system.disk` has

    def write(self, path: Path, data: bytes, *, durable: bool = False) -> None:
        the().step()
        inode = self._open(path)
        inode.seen = b""
        self._put(path, inode, data, durable)

    def append(self, path: Path, data: bytes, *, durable: bool = False) -> None:
        the().step()
        self._put(path, self._open(path), data, durable)

    def truncate(self, path: Path, size: int) -> None:
        the().step()
        inode = self._open(path)
        inode.seen = inode.seen[:size]
        self._show(path, inode)

    def rename(self, path: Path, target: Path) -> None:
        the().step()
        os.replace(path, target)
        old, new = self._name(path), self._name(target)
        moved = {new + name[len(old) :]: inode for name, inode in self.names.items() if _within(name, old)}
        self.names = {name: inode for name, inode in self.names.items() if not _within(name, old)} | moved
        self._changed()

    def link(self, path: Path, target: Path) -> None:
        the().step()
        os.link(path, target)
        self.names[self._name(target)] = self.names[self._name(path)]
        self._changed()

    def remove(self, path: Path) -> None:
        the().step()
        if path.exists():
            path.unlink()
            del self.names[self._name(path)]
            self._changed()

    def remove_tree(self, path: Path) -> None:
        the().step()
        if path.exists():
            top = self._name(path)
            for name in sorted((name for name in self.names if _within(name, top)), reverse=True):
                the().step()  # a folder is removed file by file
                place = self.root / name
                place.rmdir() if self.names[name] is None else place.unlink()
                del self.names[name]
                self._changed()

    def make_folder(self, path: Path) -> None:
        the().step()
        path.mkdir(parents=True, exist_ok=True)
        name = self._name(path)
        for folder in [name, *(str(parent) for parent in Path(name).parents if str(parent) != ".")]:
            if folder not in self.names:
                self.names[folder] = None
                self._changed()

    def claim(self, path: Path) -> IO[str]:
        the().step()
        self._open(path)
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise
        the().current.process.at_death.append(file.close)
        return file

    # How it works

    def _put(self, path: Path, inode: Inode, data: bytes, durable: bool) -> None:
        """In two halves, so that a process can be killed in between."""
        half = len(data) // 2 if the().dice.random() < 0.5 else len(data)
        inode.seen += data[:half]
        self._show(path, inode)
        the().step()
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if half < len(data):
            inode.seen += data[half:]
            self._show(path, inode)
        if durable:
            the().wait(never, the().dice.uniform(1, 8) if the().dice.random() < self.slow else 0.002)
            the().step()
            inode.synced = inode.seen
            self.synced, self.since = dict(self.names), []

    def _open(self, path: Path) -> Inode:
        name = self._name(path)
        inode = self.names.get(name)
        if inode is None:
            inode = self.names[name] = Inode()
            path.touch()
            self._changed()
        return inode

    def _show(self, path: Path, inode: Inode) -> None:
        path.write_bytes(inode.seen)
        tick = next(_ticks)
        os.utime(path, ns=(tick, tick))

    def _name(self, path: Path) -> str:
        return str(path)[len(str(self.root)) + 1 :]

    def _changed(self) -> None:
        self.since.append(dict(self.names))

    def lay_out(self, files: dict[str, bytes]) -> None:
        """Put files there from the beginning, on the disk for good."""
        for name, data in files.items():
            for folder in [str(parent) for parent in Path(name).parents if str(parent) != "."]:
                self.names[folder] = None
            inode = self.names[name] = Inode()
            inode.seen = inode.synced = data
        self._rebuild()

    def fail_power(self) -> None:
        """Keep what an outage leaves."""
        dice = the().dice
        self.names = dict(dice.choice([self.synced, *self.since]))
        for name in [name for name in self.names if str(Path(name).parent) not in (".", *self.names)]:
            del self.names[name]
        for inode in {id(inode): inode for inode in self.names.values() if inode is not None}.values():
            if inode.seen != inode.synced:
                inode.seen = _remains(inode, dice)
            inode.synced = inode.seen
        self.full = False
        self._rebuild()

    def erase(self) -> None:
        """A new disk in place of a lost one."""
        self.names, self.full = {}, False
        self._rebuild()

    def durable_content(self, path: Path) -> bytes:
        """What an outage now could not take away from a file."""
        inode = self.synced.get(self._name(path))
        return b"" if inode is None else inode.synced

    def _rebuild(self) -> None:
        shutil.rmtree(self.root)
        self.root.mkdir(parents=True)
        for name in sorted(self.names):
            inode = self.names[name]
            if inode is None:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            else:
                (self.root / name).write_bytes(inode.seen)
                self._show(self.root / name, inode)
        self.synced, self.since = dict(self.names), []


def _remains(inode: Inode, dice: Any) -> bytes:
    if inode.seen.startswith(inode.synced):  # it had grown
        return inode.seen[: dice.randint(len(inode.synced), len(inode.seen))]
    return dice.choice([inode.synced, inode.seen, inode.seen[: dice.randint(0, len(inode.seen))]])


def _within(name: str, top: str) -> bool:
    return name == top or name.startswith(top + "/")
