"""Small files of a run folder: read without waiting, written whole or not at all, kept aside when damaged."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

LARGEST = 1 << 26  # bytes of a small file; larger ones are not ours


def read_small(path: Path) -> str:
    """The text of a regular file. A pipe, a device or a huge file raises ValueError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no regular file")
        if status.st_size > LARGEST:
            raise ValueError(f"it has {status.st_size:,} bytes")
        return file.read().decode()


def write_whole(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Replace a file; a crash leaves the old content or the new one. `durable`: on the disk when this returns."""
    temporary = path.with_name(f".{path.name}")
    temporary.unlink(missing_ok=True)  # of a crash, or a link
    with temporary.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    temporary.replace(path)


def keep_aside(path: Path) -> Path | None:
    """Copy a damaged file to a name beside it that is free; None where there is none."""
    if not path.is_file():
        return None
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    shutil.copyfile(path, aside)
    return aside
