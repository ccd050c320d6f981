"""Small files of a run folder: read without waiting, written whole or not at all, kept aside when damaged."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from esker.errors import UsageError
from esker.system import disk
from esker.system.room import machine_memory

LARGEST = 1 << 26  # bytes of a small file; larger ones are not ours


def open_plain(path: Path) -> BinaryIO:
    """A regular file, opened to be read. A pipe or a device raises ValueError instead of making its reader wait."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ValueError("it is not a regular file")
    return file


def read_plain(path: Path) -> bytes:
    """The content of a regular file. Anything else, and one that cannot fit half of the memory, raises ValueError."""
    with open_plain(path) as file:
        return _whole(file, (machine_memory() or 1 << 60) // 2)


def read_small(path: Path) -> str:
    """The text of a small regular file. Anything else raises ValueError."""
    with open_plain(path) as file:
        return _whole(file, LARGEST).decode()


def _whole(file: BinaryIO, most: int) -> bytes:
    size = os.fstat(file.fileno()).st_size
    if size > most:
        raise ValueError(f"it has {size:,} bytes")
    return file.read()


def stamp_of(path: Path) -> tuple[int, int] | None:
    """What changes when a file does; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def is_plain(path: Path) -> bool:
    """Whether a path is a regular file: no link, no pipe."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def refuse_link(path: Path) -> None:
    """Refuse to write through a link, which may lead anywhere, or into a pipe. Raises UsageError."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    except ValueError as error:  # NUL, or half of a surrogate pair
        raise UsageError(f"{str(path)!r} cannot be the name of a file") from error
    if stat.S_ISLNK(mode):
        raise UsageError(f"{str(path)!r} is a link, and esker does not write through links; replace it by its target")
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise UsageError(f"{str(path)!r} is neither a file nor a folder; remove it")


def refuse_links_in(folder: Path) -> None:
    """Refuse to write into a folder that is a link or holds one. Raises UsageError."""
    refuse_link(folder)
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        refuse_link(file)


def write_whole(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Replace a file; a crash leaves the old content or the new one. `durable`: on the disk when this returns."""
    temporary = path.with_name(f".{path.name}")
    disk.remove(temporary)  # of a crash, or a link
    disk.write(temporary, content.encode() if isinstance(content, str) else content, durable=durable)
    disk.rename(temporary, path)


def keep_aside(path: Path) -> Path | None:
    """Keep a damaged file under a second name before it is replaced; None if there is none."""
    if not path.is_file():
        return None
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    disk.link(path, aside)
    return aside
