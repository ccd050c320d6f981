"""Facts: one fsynced, checksummed record per committed generation, from which every state can be recomputed."""

from __future__ import annotations

import contextlib
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from esker.algorithms.facts import Facts
from esker.system import disk

HEADER = struct.Struct("<4sIQ")  # magic, CRC-32 of the payload, length of the payload
MAGIC = b"ESKF"


def to_bytes(facts: Facts, run: str | None = None) -> bytes:
    """One record, which names its run."""
    arrays = {f.name: np.ascontiguousarray(getattr(facts, f.name)) for f in fields(facts)}
    payload = safetensors.numpy.save(arrays, None if run is None else {"run": run})
    return HEADER.pack(MAGIC, zlib.crc32(payload), len(payload)) + payload


@dataclass(frozen=True)
class Record:
    """Where an intact record is, and whose it is."""

    generation: int
    run: str | None
    start: int
    end: int


@dataclass(frozen=True)
class Scan:
    """What a file of facts holds: its usable records by generation, and what else was found."""

    records: dict[int, Record]
    problems: tuple[str, ...]
    torn: int | None  # where a record begins that was not written to its end, as a crash leaves it
    size: int

    def reach(self, first: int) -> int:
        """The generation up to which records follow one another from `first` on."""
        while first in self.records:
            first += 1
        return first


def append(path: Path, facts: Facts, run: str | None = None) -> None:
    """Commit a generation: when this returns, it is on the disk."""
    start = path.stat().st_size if path.exists() else 0
    try:
        disk.append(path, to_bytes(facts, run), durable=True)
    except OSError:
        with contextlib.suppress(OSError):  # half a record must not precede the next one
            disk.truncate(path, start)
        raise


def read(path: Path) -> Iterator[tuple[Facts, int]]:
    """The intact records from the start, each with the offset at which it ends; stops at the first damaged one."""
    data = path.read_bytes() if path.exists() else b""
    at = 0
    while (record := _record(data, at)) is not None:
        at = record.end
        yield load(data, record), at


def load(data: bytes, record: Record) -> Facts:
    """The facts of a record."""
    return Facts(**safetensors.numpy.load(data[record.start + HEADER.size : record.end]))


def scan(data: bytes, run: str | None = None) -> Scan:
    """Every intact record of a run, whatever is damaged before it; doubled and foreign ones are problems."""
    records: dict[int, Record] = {}
    problems: list[str] = []
    torn, at = None, 0
    while at < len(data):
        record = _record(data, at)
        if record is None:
            following = _next(data, at + 1)
            if following is None and _is_cut(data, at):
                torn = at
                break
            problems.append(f"{(following or len(data)) - at:,} bytes at {at:,} are damaged")
            at = following or len(data)
            continue
        if run is not None and record.run not in (None, run):
            problems.append(f"the record at {at:,} is of another run")
        elif record.generation in records:
            problems.append(f"generation {record.generation} is there twice")
        else:
            records[record.generation] = record
        at = record.end
    return Scan(records, tuple(problems), torn, len(data))


def _record(data: bytes, at: int) -> Record | None:
    """The intact record that begins at an offset."""
    if at + HEADER.size > len(data):
        return None
    magic, checksum, length = HEADER.unpack_from(data, at)
    end = at + HEADER.size + length
    if magic != MAGIC or end > len(data) or zlib.crc32(memoryview(data)[at + HEADER.size : end]) != checksum:
        return None
    return _describe(data, at, end)


def _describe(data: bytes, start: int, end: int) -> Record | None:
    """Generation and run, from the head of the payload."""
    first = start + HEADER.size
    try:
        (length,) = struct.unpack_from("<Q", data, first)
        begin, run = _head(data[first + 8 : first + 8 + length])
        (generation,) = struct.unpack_from("<q", data, first + 8 + length + begin)
        return Record(generation, run, start, end)
    except (struct.error, ValueError, KeyError, TypeError):  # a checksum that fits by chance
        return None


@lru_cache(maxsize=64)
def _head(text: bytes) -> tuple[int, str | None]:
    """Where the generation is in a payload, and whose it is; records of one shape have equal heads."""
    head: dict[str, Any] = json.loads(text)
    return head["generation"]["data_offsets"][0], head.get("__metadata__", {}).get("run")


def _next(data: bytes, at: int) -> int | None:
    """The offset of the next intact record."""
    while (at := data.find(MAGIC, at)) >= 0:
        if _record(data, at) is not None:
            return at
        at += 1
    return None


def _is_cut(data: bytes, at: int) -> bool:
    """Whether what begins at an offset is a record that lacks its end."""
    if at + HEADER.size > len(data):
        return data[at : at + 4] == MAGIC[: len(data) - at]
    magic, _, length = HEADER.unpack_from(data, at)
    return bool(magic == MAGIC and at + HEADER.size + length > len(data))
