"""Everything that changes a run folder, by one name: a simulated disk puts its own here."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path
from typing import IO


def write(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Give a file this content, in place. `durable`: it is on the disk when this returns."""
    with path.open("wb") as file:
        _put(file, data, durable)


def append(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Add to a file's end. `durable`: it is on the disk when this returns."""
    with path.open("ab") as file:
        _put(file, data, durable)


def truncate(path: Path, size: int) -> None:
    """Cut a file back."""
    os.truncate(path, size)


def rename(path: Path, target: Path) -> None:
    """Give a file or a folder another name; a file of that name is replaced."""
    path.replace(target)


def link(path: Path, target: Path) -> None:
    """Give a file a second name: at once, however large it is; a copy where the file system has no links."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    path.unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    """Remove a folder with all that is in it, as far as that goes."""
    shutil.rmtree(path, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Make a folder and those it lies in, unless they are there."""
    path.mkdir(parents=True, exist_ok=True)


def claim(path: Path) -> IO[str]:
    """Open a lock file that nobody else holds; closing it, or the end of the process, lets go. Otherwise raises OSError."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(path.open("a"))
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stack.pop_all()
        return file


def _put(file: IO[bytes], data: bytes, durable: bool) -> None:
    file.write(data)
    file.flush()
    if durable:
        os.fsync(file.fileno())
