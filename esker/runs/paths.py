"""The default folder of a new run."""

from __future__ import annotations

import time
from pathlib import Path


def default_path(env: str, algo: str, seed: int) -> Path:
    """runs/<env>/<algo>-s<seed>-<time>, with a number behind it if that exists."""
    base = Path("runs") / env.replace("/", "-").replace(":", "-") / f"{algo}-s{seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path
