"""What two seeds at once gain over one: each steps while the other waits for its last episodes. python benchmarks/tail.py

Humanoid by `humanoid/ars`, from its shipped policy and without learning, so that episodes stay of unequal length. Both runs
have a worker on every core. Writes benchmarks/results/tail.json.
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
MEMBERS = 8  # for each worker, so that a generation's end is a good part of it
GENERATIONS = 3  # at least, that a reading spans


def main() -> int:
    """Measure in turns and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=25.0, help="of one reading, after both runs began")
    parser.add_argument("--note", default="", help="what a reader should know")
    arguments = parser.parse_args()
    rounds = [{count: _rate(count, arguments.seconds) for count in (1, 2)} for _ in range(arguments.rounds)]
    found = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "note": arguments.note,
        "command": "python benchmarks/tail.py",
        "workers": os.cpu_count(),
        "population": MEMBERS * (os.cpu_count() or 1),
        "steps_per_second": {count: [one[count] for one in rounds] for count in (1, 2)},
        "gain": statistics.median(one[2] / one[1] for one in rounds),
    }
    (ROOT / "benchmarks" / "results" / "tail.json").write_text(json.dumps(found, indent=1) + "\n")
    print(found["steps_per_second"], found["gain"])
    return 0


def _rate(count: int, seconds: float) -> float:
    """Committed steps per second of some runs together, each by its own clock."""
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / f"seed-{seed}" for seed in range(count)]
        runs = [subprocess.Popen(_command(seed, place), cwd=folder) for seed, place in enumerate(places)]
        try:
            before = [_progress(place, 1) for place in places]
            time.sleep(seconds)
            after = [_progress(place, before[number][0] + GENERATIONS) for number, place in enumerate(places)]
        finally:
            for run in runs:
                run.terminate()
            for run in runs:
                run.wait()
    return sum((now[1] - then[1]) / (now[2] - then[2]) for now, then in zip(after, before, strict=True))


def _command(seed: int, place: Path) -> list[str]:
    workers = os.cpu_count() or 1
    options = {"workers": workers, "population": MEMBERS * workers, "top-directions": MEMBERS * workers // 2, "lr": 1e-9}
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    start = ["train", "Humanoid-v5", "--preset", "humanoid/ars", "--init-from", str(SHIPPED), "--seed", str(seed)]
    return [sys.executable, "-m", "esker", *start, *given, "--steps", "1000000000", "--quiet", "--run-dir", str(place)]


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
