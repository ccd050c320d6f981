"""Read a W&B transaction log (LevelDB's log format behind a seven-byte header), to see what was really written."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK, HEADER = 32768, struct.Struct("<IHB")
FULL, LAST = 1, 4


def records(path: Path) -> Iterator[Any]:
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, parts = path.read_bytes(), 7, b""
    assert data[:4] == b":W&B"
    while at + HEADER.size <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEADER.size:
            at += left
            continue
        _, length, kind = HEADER.unpack_from(data, at)
        parts += data[at + HEADER.size : at + HEADER.size + length]
        at += HEADER.size + length
        if kind in (FULL, LAST):
            yield Record.FromString(parts)
            parts = b""


def history(path: Path) -> list[dict[str, Any]]:
    """The logged rows."""
    rows = []
    for record in records(path):
        if record.WhichOneof("record_type") == "history":
            rows.append({i.key or ".".join(i.nested_key): json.loads(i.value_json) for i in record.history.item})
    return rows


def run_record(path: Path) -> Any:
    """How the run was declared: id, project, display name, tags, configuration."""
    return next(record.run for record in records(path) if record.WhichOneof("record_type") == "run")
