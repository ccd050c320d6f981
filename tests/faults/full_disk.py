"""Run folders on a disk that is full (a small tmpfs): one line, nothing committed is lost, and with room the same bits.

Needs the right to mount. `python tests/faults/full_disk.py --folders 30`
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "fuzz")]
from damages import KINDS, center, make  # noqa: E402

import esker  # noqa: E402

WRITERS = [
    ["report", "RUN"],
    ["plot", "RUN", "-o", "RUN/x.png"],
    ["export", "RUN"],
    ["card", "RUN", "--episodes", "1", "--workers", "0"],
    ["eval", "RUN", "--episodes", "1", "--workers", "0"],
]
RESUME = ["resume", "RUN", "--workers", "0", "--quiet", "--generations"]
LAST = 30


class Disk:
    """A tmpfs whose size can be chosen."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], check=True)

    def leave(self, room: int | None) -> None:
        """Leave some bytes free; None: plenty."""
        found = os.statvfs(self.place)
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        size = 64 << 20 if room is None else used + room
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.place)], check=True)

    def close(self) -> None:
        subprocess.run(["umount", "-l", str(self.place)], check=True)


def run(command: list[str], path: Path) -> tuple[int, str]:
    """Status and errors of a command."""
    arguments = [part.replace("RUN", str(path)) for part in command]
    done = subprocess.run([sys.executable, "-m", "esker", *arguments], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stderr


def fill(disk: Disk, folder: Path, draw: random.Random, counts: Counter[str], end: bytes) -> None:
    """Run commands on a full disk, then make room and continue."""
    disk.leave(draw.choice([0, 4096, draw.randrange(0, 60_000), draw.randrange(0, 200_000)]))
    before = esker.Run(folder).history[-1]["generation"]
    for command in ([*RESUME, str(LAST)], *draw.sample(WRITERS, 2)):
        status, errors = run(command, folder)
        counts[f"{command[0]}: status {status}"] += 1
        assert status in (0, 1, 2), (command, status, errors[-500:])
        assert "Traceback" not in errors, (command, errors[-800:])
        assert "a bug in esker" not in errors, (command, errors[-800:])
    disk.leave(None)
    status, errors = run([*RESUME, str(LAST)], folder)
    assert status == 0, errors[-800:]
    assert esker.Run(folder).history[-1]["generation"] >= before
    assert center(folder) == end, "other bits than those of a run that had room"
    counts["bits equal"] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folders", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(KINDS))
    given = parser.parse_args()
    if os.geteuid() != 0:
        print("skipped: only root may mount a small disk")
        return 0
    counts, faults = Counter[str](), 0
    paths = os.pathsep.join([str(HERE.parent.parent), str(HERE.parent), str(HERE)])
    with tempfile.TemporaryDirectory(prefix="esker-full-") as name:
        os.environ |= {"XDG_STATE_HOME": name, "PYTHONPATH": paths}
        os.chdir(name)
        disk, runs, ends = Disk(Path(name) / "disk"), {}, {}
        try:
            for number in range(given.folders):
                draw = random.Random(given.seed * 1_000_000 + number)
                kind = given.only or draw.choice(list(KINDS))
                if kind not in runs:
                    runs[kind] = make(kind, Path(name))
                    whole = Path(shutil.copytree(runs[kind], Path(name) / f"{kind}-end"))
                    ends[kind] = center(esker.resume(whole, generations=LAST).path)
                folder = Path(shutil.copytree(runs[kind], disk.place / "run", symlinks=True))
                try:
                    fill(disk, folder, draw, counts, ends[kind])
                except AssertionError as fault:
                    faults += 1
                    print("FAULT", number, kind, str(fault)[:1000], flush=True)
                disk.leave(None)
                shutil.rmtree(folder)
        finally:
            disk.close()
    print("\n".join(f"{count:5}  {name}" for name, count in sorted(counts.items())))
    print(f"{given.folders} full disks, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
