"""A small world that takes its time, so that there is time to kill the process that steps it."""

from __future__ import annotations

import time
from typing import Any

from hybrid_worlds import Reach


class Slow(Reach):
    """Reach, with a pause in every step."""

    def step(self, action: Any) -> Any:
        time.sleep(0.002)
        return super().step(action)
