"""Facts: one fsynced, checksummed record per committed generation, from which every state can be recomputed."""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

HEADER = struct.Struct("<4sIQ")  # magic, CRC-32 of the payload, length of the payload
MAGIC = b"ESKF"


@dataclass(frozen=True)
class Facts:
    """What left one generation. Arrays are in member order; a failed member has fitness -inf and return NaN."""

    generation: NDArray[np.int64]
    fitness: NDArray[np.float64]
    returns: NDArray[np.float64]
    lengths: NDArray[np.int32]
    center_returns: NDArray[np.float64]
    center_lengths: NDArray[np.int32]
    statistics_count: NDArray[np.int64]
    statistics_total: NDArray[np.float64]
    statistics_squares: NDArray[np.float64]
    discarded_steps: NDArray[np.int64]
    seconds: NDArray[np.float64]

    def to_bytes(self) -> bytes:
        """One record."""
        payload = safetensors.numpy.save({f.name: np.ascontiguousarray(getattr(self, f.name)) for f in fields(self)})
        return HEADER.pack(MAGIC, zlib.crc32(payload), len(payload)) + payload


def append(path: Path, facts: Facts) -> None:
    """Commit a generation: when this returns, it is on the disk."""
    with path.open("ab") as file:
        start = file.tell()
        try:
            file.write(facts.to_bytes())
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):  # half a record must not stand in front of the next one
                os.truncate(path, start)
            raise


def read(path: Path) -> Iterator[tuple[Facts, int]]:
    """The intact records from the start, each with the offset at which it ends; stops at the first damaged one."""
    if not path.exists():
        return
    data = path.read_bytes()
    at = 0
    while at + HEADER.size <= len(data):
        magic, checksum, length = HEADER.unpack_from(data, at)
        payload = data[at + HEADER.size : at + HEADER.size + length]
        if magic != MAGIC or len(payload) != length or zlib.crc32(payload) != checksum:
            return
        at += HEADER.size + length
        yield Facts(**safetensors.numpy.load(payload)), at
