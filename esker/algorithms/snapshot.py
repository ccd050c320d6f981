"""A snapshot: the whole state of a run between two generations, as arrays and plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Snapshot:
    """A state, ready to run `generation`: arrays and plain values."""

    generation: int
    arrays: dict[str, np.ndarray]
    values: dict[str, Any]
