"""Scaling: whole generations by n workers against bare replays of the same episodes by n processes, for several n.

Work grows with the workers: each has as many episodes whatever their number. The raw rate tells how far the machine itself
scales, where processors share cores or caches.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

from esker.bench.measurement import Measurement
from esker.bench.rollout import Case, alternate

CENTER = 2  # episodes of the centre
CASES = (  # the population is that of one worker
    Case("HalfCheetah-v5", 0.90, {"population": 8}),
    Case("Humanoid-v5", 0.90, {"population": 64, "sigma": 0.1}),  # episodes of unequal length
)


def measure(quick: bool, workers: list[int] | None = None) -> list[Measurement]:
    """The ratio for every number of workers; by default powers of two until there is one for every processor."""
    counts = workers or [2**power for power in range((os.cpu_count() or 1).bit_length())]
    return [measure_one(case, count, quick) for case in CASES for count in counts]


def measure_one(case: Case, workers: int, quick: bool) -> Measurement:
    """The ratio of one case for a number of workers."""
    options = {**case.options, "population": workers * case.options["population"] - CENTER, "center_episodes": CENTER}
    with tempfile.TemporaryDirectory() as folder:
        turns = alternate(replace(case, options=options), Path(folder), 1 if quick else 3, workers)
    ratio = statistics.median(turns.ratios)
    return Measurement(f"scaling/{case.env}/{workers}", ratio, "", f"≥ {case.wanted}", turns.detail)
