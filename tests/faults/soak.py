"""An hour of training with an environment that leaks, raises and hangs: memory flat, throughput steady, nothing left.

The throughput that must hold is steps in the processor time of a fixed piece of work, since other programs may use the
machine and its cores share caches; steps per second are printed too. In the end everything is killed and the run resumed.
`python tests/faults/soak.py --minutes 60`
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from kills import MARK, marked, shared_memory  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
MEMORY, THROUGHPUT = 0.05, 0.10  # what may change from the second tenth of the time to the last


class Look(NamedTuple):
    """What is seen of a run at one moment."""

    time: float
    steps: int
    processor: float  # seconds, of the parent and of all its workers
    unit: float  # processor seconds of a fixed piece of work just now: how slow the machine is
    parent: int  # bytes
    worker: int  # bytes of the largest worker beside what its environments leaked


class Soak:
    """One long run and what was seen of it."""

    def __init__(self, place: Path, workers: int) -> None:
        self.path, self.notes, self.workers = place / "run", place / "notes", workers
        self.notes.mkdir()
        self.looks: list[Look] = []
        self.mapped: set[str] = set()  # shared memory that was seen in use
        self.ended: dict[int, float] = {}  # processor time of each process at the last look at it
        self.process = self.start(begin=True)

    def start(self, *, begin: bool, generations: int = 10**9) -> subprocess.Popen[bytes]:
        """Begin the run, or resume it until some generation."""
        until = ["--generations", str(generations), "--quiet"]
        world = ["soaked_world:Soaked", "--env-kwargs", json.dumps({"notes": str(self.notes)})]
        small = ["--algo", "es", "--population", "2000", "--noise", "counter", "--hidden", "8,8", "--preset", "none"]
        careful = ["--on-error", "worst", "--step-timeout", "3", "--workers", str(self.workers)]
        arguments = ["train", *world, *small, *careful, "--run-dir", str(self.path)] if begin else ["resume", str(self.path)]
        paths = os.pathsep.join([str(HERE.parent.parent), str(HERE.parent), str(HERE)])
        environment = os.environ | {"PYTHONPATH": paths, MARK: str(self.path)}
        return subprocess.Popen([sys.executable, "-m", "esker", *arguments, *until], env=environment, cwd=self.path.parent)

    def look(self) -> None:
        """Note memory, steps and processor time."""
        self.mapped |= shared_memory(self.path)
        workers = [pid for pid in marked(self.path) if pid != self.process.pid]
        for pid in (self.process.pid, *workers):
            self.ended[pid] = _processor(pid)
        beside = [_memory(pid) - self._leaked(pid) for pid in workers]
        seen = Look(
            time.monotonic(),
            _steps(self.path / "journal.jsonl"),
            sum(self.ended.values()),
            _unit(),
            _memory(self.process.pid),
            max(beside, default=0),
        )
        self.looks.append(seen)

    def _leaked(self, pid: int) -> int:
        note = self.notes / str(pid)
        return int(note.read_text() or 0) if note.exists() else 0

    def compare(self) -> list[str]:
        """Print the second tenth next to the last; returns what changed too much."""
        tenth = max(2, len(self.looks) // 10)
        first, last = self.looks[tenth : 2 * tenth + 1], self.looks[-tenth - 1 :]
        figures = {
            "parent, MB": ([look.parent / 1e6 for look in first], [look.parent / 1e6 for look in last], MEMORY, 1),
            "worker beside leaks, MB": (
                [look.worker / 1e6 for look in first],
                [look.worker / 1e6 for look in last],
                MEMORY,
                1,
            ),
            "steps per unit of work": ([_per_unit(first)], [_per_unit(last)], THROUGHPUT, -1),
            "steps per processor second": ([_rate(first, "processor")], [_rate(last, "processor")], None, -1),
            "steps per second": ([_rate(first, "time")], [_rate(last, "time")], None, -1),
        }
        faults = []
        for name, (before, after, most, sign) in figures.items():
            change = median(after) / median(before) - 1
            print(f"{name:28} {median(before):10.1f} -> {median(after):10.1f}  {change:+.1%}", flush=True)
            if most is not None and sign * change > most:
                faults.append(f"{name} changed by {change:+.1%}")
        return faults

    def kill(self, pids: list[int]) -> list[str]:
        """Kill processes; returns what outlives them."""
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        until = time.monotonic() + 15
        while (left := marked(self.path)) and time.monotonic() < until:
            time.sleep(0.2)
        return [f"{left} are left after a kill of {len(pids)} processes"] if left else []


def _steps(journal: Path) -> int:
    """The steps of the last whole row."""
    if not journal.exists():
        return 0
    with journal.open("rb") as file:
        file.seek(max(0, journal.stat().st_size - 8192))
        rows = file.read().split(b"\n")[:-1]
    return json.loads(rows[-1])["env_steps"] if rows else 0


def _rate(looks: list[Look], name: str) -> float:
    return (looks[-1].steps - looks[0].steps) / (getattr(looks[-1], name) - getattr(looks[0], name))


def _per_unit(looks: list[Look]) -> float:
    return _rate(looks, "processor") * median(look.unit for look in looks)


def _unit() -> float:
    """Processor seconds of a fixed piece of work."""
    before = time.process_time()
    for _ in range(5):
        sorted(range(20_000), key=lambda number: number * 7919 % 20_011)
    return time.process_time() - before


def _processor(pid: int) -> float:
    """Processor seconds of a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def _memory(pid: int) -> int:
    """Bytes of memory that are the process's own."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def soak(run: Soak, minutes: float, every: float) -> list[str]:
    """Look on, then kill the parent, resume, kill everything, resume."""
    until = time.monotonic() + 60 * minutes
    while time.monotonic() < until and run.process.poll() is None:
        time.sleep(every)
        run.look()
        if len(run.looks) % max(1, round(60 * minutes / every / 20)) == 0:
            print(f"{len(run.looks) * every / 60:5.1f} min", run.looks[-1], flush=True)
    if run.process.poll() is not None:
        return [f"the run ended by itself with status {run.process.returncode}"]
    faults = run.compare()
    rows = [json.loads(line) for line in (run.path / "journal.jsonl").read_text().splitlines()]
    print(
        f"{rows[-1]['generation']} generations, {sum(row.get('failed_members', 0) for row in rows)} failed members,", end=" "
    )
    print(f"{len(run.ended) - 1 - run.workers} workers replaced", flush=True)
    faults += run.kill([run.process.pid])
    run.process = run.start(begin=False)
    time.sleep(15)
    faults += run.kill(marked(run.path))
    reached = json.loads((run.path / "journal.jsonl").read_text().splitlines()[-1])["generation"]
    run.process = run.start(begin=False, generations=reached + 2)
    if run.process.wait(timeout=300):
        faults.append(f"a resume after the kills ended with status {run.process.returncode}")
    return faults + run.kill([])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=float, default=5, help="seconds between two looks")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="esker-soak-") as place:
        os.environ["XDG_STATE_HOME"] = place
        run = Soak(Path(place), given.workers)
        try:
            faults = soak(run, given.minutes, given.every)
        finally:
            run.kill(marked(run.path))
    left = run.mapped & set(os.listdir("/dev/shm"))
    faults += [f"left in shared memory: {sorted(left)}"] if left else []
    print("\n".join(faults) or f"{given.minutes:g} minutes, no faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
