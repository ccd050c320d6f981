"""A world that leaks memory, raises and hangs at random, as worlds of long trainings do."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

from hybrid_worlds import Reach

LEAK = 1 << 20  # bytes; large enough to be a mapping, so that memory can be told from what esker itself keeps
draw = random.Random(os.urandom(8))
kept: list[bytearray] = []


class Soaked(Reach):
    """Reach; of its episodes one in 2,000 leaks, one in 500 raises and one in 200,000 hangs. Notes what it leaked."""

    def __init__(self, notes: str) -> None:
        super().__init__()
        self.notes = Path(notes)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.fate = 1.0 if seed is None or seed < 1000 else draw.random()  # the first look at it uses small seeds
        if self.fate < 1 / 2000:
            kept.append(bytearray(b"x" * LEAK))
            (self.notes / str(os.getpid())).write_text(str(len(kept) * LEAK))
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        if self.steps == 5 and self.fate > 0.5:
            if 0.6 < self.fate < 0.6 + 1 / 500:
                raise RuntimeError("the soaked world raises")
            if 0.7 < self.fate < 0.7 + 1 / 200_000:
                time.sleep(3600)
        return super().step(action)
