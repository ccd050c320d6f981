"""What several tests use."""

from __future__ import annotations

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def center(run: object, checkpoint: str | int = "latest") -> np.ndarray:
    """The parameters of a run's checkpoint."""
    return run.policy(checkpoint).parameters  # type: ignore[attr-defined]
