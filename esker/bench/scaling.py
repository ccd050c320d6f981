"""Scaling: whole generations by n workers against bare replays of the same episodes by n processes, for several n."""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

from esker.bench.measurement import Measurement
from esker.bench.rollout import Case, alternate

CASES = (
    Case("HalfCheetah-v5", 0.90, {"population": 192, "center_episodes": 2}),
    Case("Humanoid-v5", 0.90, {"population": 2000, "center_episodes": 2, "sigma": 0.1}),  # episodes of unequal length
)


def measure(quick: bool, workers: list[int] | None = None) -> list[Measurement]:
    """The ratio for every number of workers; by default powers of two until there is one for every processor."""
    counts = workers or [2**power for power in range((os.cpu_count() or 1).bit_length())]
    return [_measure(case, count, quick) for case in CASES for count in counts]


def _measure(case: Case, workers: int, quick: bool) -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        turns = alternate(case, Path(folder), 1 if quick else 3, workers)
    ratio = statistics.median(turns.ratios)
    return Measurement(f"scaling/{case.env}/{workers}", ratio, "", f"≥ {case.wanted}", turns.detail)
