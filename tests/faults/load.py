"""Much of everything: 64 workers, 4,096 slots, 100,000 members and generations, 500 runs, a report of 50; works, in seconds.

Commands that only read must end within `--seconds` of processor time; what trains must end. `python tests/faults/load.py`
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomli_w

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

import esker  # noqa: E402
from esker.algorithms.facts import Facts  # noqa: E402
from esker.algorithms.snapshot import Snapshot  # noqa: E402
from esker.runs import checkpoints  # noqa: E402
from esker.runs.facts import read, to_bytes  # noqa: E402
from esker.runs.files import write_whole  # noqa: E402
from esker.runs.folder import RunFolder  # noqa: E402
from esker.runs.seals import seal_json, seal_toml  # noqa: E402

SMALL: dict[str, Any] = {
    "preset": None,
    "population": 8,
    "hidden": (4,),
    "noise": "counter",
    "workers": 0,
    "quiet": True,
    "center_episodes": 2,
}
TRAIN = [
    "train",
    "CartPole-v1",
    "--preset",
    "none",
    "--noise",
    "counter",
    "--hidden",
    "none",
    "--quiet",
    "--center-episodes",
    "2",
]
GENERATIONS = 100_000
Tried = tuple[str, bool, list[str]]  # a name, whether it only reads, and the command


def measured(*arguments: str) -> tuple[int, float, float, str]:
    """Status, seconds of the clock and of the processor, and errors of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([sys.executable, "-m", "esker", *arguments], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.returncode, time.monotonic() - began, processor, done.stderr


def many_generations(place: Path) -> str:
    """A run of 100,000 committed generations, made of a few real ones: records, rows and a newest snapshot."""
    run = esker.train("CartPole-v1", run_dir=str(place / "long"), generations=3, **SMALL)
    folder = RunFolder(run.path)
    (facts, _), row = list(read(folder.facts_file))[-1], folder.rows()[-1]
    with folder.facts_file.open("ab") as records, folder.journal_file.open("a") as journal:
        for generation in range(3, GENERATIONS):
            named = Facts(**{**vars(facts), "generation": facts.generation * 0 + generation})
            records.write(to_bytes(named, folder.identity))
            journal.write(json.dumps(row | {"generation": generation}) + "\n")
    newest = checkpoints.read(folder.checkpoints / "000003")
    folder.checkpoint(Snapshot(GENERATIONS, newest.arrays, newest.values), latest=True)
    (run.path / "final.json").unlink(missing_ok=True)
    return str(run.path)


def many_runs(place: Path, count: int) -> str:
    """A folder of short runs, two seeds of each population: copies of a real one under other identities."""
    real = esker.train("CartPole-v1", run_dir=str(place.parent / "real"), generations=20, **SMALL).path
    for number in range(count):
        folder = RunFolder(Path(shutil.copytree(real, place / f"run-{number:03d}")))
        write_whole(folder.about_file, seal_json(folder.about() | {"run": f"{number:032x}"}))
        options = folder.values() | {"population": 2 + 2 * (number // 2), "seed": number % 2}
        write_whole(folder.config_file, seal_toml(tomli_w.dumps(options)))
    return str(place)


def training(place: Path) -> Iterator[Tried]:
    """Many workers, many slots, many members."""
    small = [*TRAIN, "--generations", "2"]
    yield "64 workers", False, [*small, "--workers", "64", "--population", "256"]
    yield "4,096 slots", False, [*small, "--slots", "4096", "--workers", "1", "--population", "8192"]
    yield "100,000 members", False, [*small, "--workers", "1", "--population", "100000"]


def generations(place: Path) -> Iterator[Tried]:
    """A long run."""
    long = many_generations(place)
    for command in ("runs", "report", "plot", "eval", "card", "export"):
        few = ["--episodes", "2", "--workers", "0"] if command in ("eval", "card") else []
        output = ["-o", str(place / "x.png")] if command == "plot" else []
        yield f"100,000 generations: {command}", True, [command, long, *few, *output]
    yield "100,000 generations: resume", True, ["resume", long, "--generations", str(GENERATIONS + 2), "--quiet"]


def runs(place: Path) -> Iterator[Tried]:
    """A folder of many runs."""
    folder = many_runs(place / "runs", 500)
    yield "500 runs: runs", True, ["runs", folder]
    yield "500 runs: plot", True, ["plot", folder, "-o", str(place / "all.png")]
    fifty = [str(path) for path in sorted(Path(folder).iterdir())[:50]]
    yield "50 runs: report", True, ["report", *fifty, "-o", str(place / "fifty.html")]


GROUPS = {"training": training, "generations": generations, "runs": runs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15, help="of the processor, for a command that only reads")
    parser.add_argument("--only", choices=sorted(GROUPS))
    given = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory(prefix="esker-load-") as name:
        os.environ["XDG_STATE_HOME"] = name
        os.environ["PYTHONPATH"] = str(HERE.parent.parent)
        os.chdir(name)
        groups = [GROUPS[given.only]] if given.only else list(GROUPS.values())
        for what, reads, command in itertools.chain.from_iterable(group(Path(name)) for group in groups):
            status, clock, processor, errors = measured(*command)
            slow = reads and processor > given.seconds
            faults += status != 0 or slow
            print(
                f"{what:30} status {status}  {clock:6.1f} s, processor {processor:6.1f} s{'  SLOW' if slow else ''}",
                flush=True,
            )
            if status:
                print(errors[-800:], flush=True)
    print(f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
