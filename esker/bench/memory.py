"""Memory: what a worker keeps resident, and whether it grows."""

from __future__ import annotations

import tempfile
from pathlib import Path

from esker.bench.measurement import Measurement
from esker.bench.prepared import prepared
from esker.engines.local import LocalEngine

GENERATIONS = 200
MEASURABLE = Path("/proc/self/smaps").exists()  # Linux


def measure(quick: bool) -> list[Measurement]:
    """Private memory of a CartPole worker after 20 generations and after 200 more."""
    state, _ = prepared("CartPole-v1", {"population": 40, "sigma": 0.1})
    engine = LocalEngine(state.task, 2, state.table)
    sizes = []
    with tempfile.TemporaryDirectory():
        try:
            for generation in range(20 + (GENERATIONS // 4 if quick else GENERATIONS) + 1):
                plan = state.plan()
                engine.evaluate(state.job(), plan)
                state.replay(state.facts(plan, 0.0))
                if generation >= 20:
                    sizes.append(max(private(pid) for pid in engine.pids))
        finally:
            engine.close()
    growth = sizes[-1] - sizes[0]
    detail = {"at the start": f"{sizes[0] / 2**20:.1f} MiB", "generations": len(sizes) - 1}
    return [
        Measurement("memory/worker", sizes[-1] / 2**20, "MiB private", "small", detail),
        Measurement("memory/growth", growth / 2**20, "MiB", "flat", detail),
    ]


def private(pid: int) -> int:
    """Bytes that belong to this process alone; the noise table is everyone's, also where only one has read a page yet."""
    size, shared = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        first, *rest = line.split()
        if not first.endswith(":"):  # a mapping begins: its addresses, and its file at the end
            shared = "/memfd:esker" in line
        elif first.startswith("Private") and not shared:
            size += int(rest[0]) * 1024
    return size
