"""What two seeds gain over one: each steps while the other waits for its last episodes. python benchmarks/tail.py

Humanoid by `humanoid/ars`, from its shipped policy and without learning, so that episodes stay of unequal length. One seed
with a worker on every core, and two seeds that divide the cores (`--seeds 0..1`). Writes benchmarks/results/tail.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evidence_machine import ROOT, commit, machine

SHIPPED = ROOT / "esker" / "presets" / "humanoid" / "ars"
GENERATIONS = 3  # at least, that a reading spans
CORES = len(os.sched_getaffinity(0))
RUNS = {"one": ["--seeds", "0"], "shared": ["--seeds", "0..1"]}


def main() -> int:
    """Measure in turns and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=25.0, help="of one reading, after all runs began")
    parser.add_argument("--members", type=int, default=8, help="for each core; with few, a generation's end is most of it")
    parser.add_argument("--note", default="", help="what a reader should know")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "tail.json", help="where to store")
    arguments = parser.parse_args()
    rates: dict[str, list[float]] = {name: [] for name in RUNS}
    for _ in range(arguments.rounds):
        for name, taken in rates.items():
            taken.append(_rate(RUNS[name], arguments.members * CORES, arguments.seconds))
            print(name, f"{taken[-1]:,.0f} steps/s", flush=True)
    found = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "note": arguments.note,
        "command": f"python benchmarks/tail.py --members {arguments.members}",
        "workers": CORES,
        "population": arguments.members * CORES,
        "steps_per_second": rates,
        "gain": {
            name: statistics.median(a / b for a, b in zip(taken, rates["one"], strict=True)) for name, taken in rates.items()
        },
    }
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _rate(seeds: list[str], population: int, seconds: float) -> float:
    """Committed steps per second of some seeds together, each by its own clock."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.Popen([*_command(folder, population), *seeds], cwd=folder)
        try:
            places = [Path(folder) / "runs" / f"s{seed}" for seed in range(2 if ".." in seeds[1] else 1)]
            before = [_progress(place, 1) for place in places]
            time.sleep(seconds)
            after = [_progress(place, before[number][0] + GENERATIONS) for number, place in enumerate(places)]
        finally:
            run.terminate()
            run.wait()
    return sum((now[1] - then[1]) / (now[2] - then[2]) for now, then in zip(after, before, strict=True))


def _command(folder: str, population: int) -> list[str]:
    options = {"population": population, "top-directions": population // 2, "lr": 1e-9, "steps": 10**9}
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    start = ["train", "Humanoid-v5", "--preset", "humanoid/ars", "--init-from", str(SHIPPED), "--run-dir", f"{folder}/runs"]
    return [sys.executable, "-m", "esker", *start, *given, "--quiet"]


def _progress(place: Path, generations: int) -> tuple[int, int, float]:
    """Generations, steps and seconds of a run's journal, once it has at least these generations."""
    while True:
        journal = place / "journal.jsonl"
        lines = journal.read_text().rpartition("\n")[0].splitlines() if journal.exists() else []
        if len(lines) >= generations:
            last = json.loads(lines[-1])
            return len(lines), last["env_steps"], last["wall_time"]
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
