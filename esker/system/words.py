"""Words beside numbers, and options as they are typed."""

from __future__ import annotations

import shlex
from typing import Any


def count(amount: int, noun: str) -> str:
    """`1 run`, `1,200 runs`."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def flag(name: str, value: Any) -> str:
    """An option as commands take it: `--crop 34,194`, `--no-fire`, `--init-from none`."""
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    text = ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return f"--{name} {'none' if value is None or value == () else shlex.quote(text)}"
