"""The update: the weighted sum of N noise slices against reading the same slices once."""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch

from esker.bench.measurement import Measurement
from esker.noise.table import NoiseTable, TableNoise

MEMBERS, DIMENSION = 1_440, 166_000


def measure(quick: bool) -> list[Measurement]:
    """N = 1,440 independent members of d = 166,000 with two threads; the same bits on one, two and four."""
    table = NoiseTable.create(0, 25_000_000)
    noise = TableNoise(table, 0, DIMENSION)
    weights = np.random.default_rng(0).standard_normal(MEMBERS)
    rows = [noise.direction(0, k) for k in range(MEMBERS)]
    threads = torch.get_num_threads()
    sums, reads = [], []
    try:
        bits = set()
        for count in (1, 4, 2):
            torch.set_num_threads(count)
            bits.add(noise.weighted_sum(0, weights).tobytes())
        for _ in range(3 if quick else 9):
            began = time.perf_counter()
            noise.weighted_sum(0, weights)
            middle = time.perf_counter()
            for row in rows:
                row.sum()
            sums.append(middle - began)
            reads.append(time.perf_counter() - middle)
    finally:
        torch.set_num_threads(threads)
        table.close()
    ratio = statistics.median(s / r for s, r in zip(sums, reads, strict=True))
    detail = {
        "sum": f"{1e3 * statistics.median(sums):.0f} ms",
        "read": f"{1e3 * statistics.median(reads):.0f} ms",
        "same bits on 1, 2, 4 threads": len(bits) == 1,
    }
    return [Measurement("update", ratio, "× one read", "≤ 1.0", detail)]
