"""What a benchmark finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One ratio, what it should be, and how it was made."""

    name: str
    value: float
    unit: str
    wanted: str
    detail: dict[str, Any]
