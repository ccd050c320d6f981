"""Damaged run folders of every algorithm: each continues to the bits of the undamaged one, or is refused in one line.

`python tests/faults/damages.py --folders 200`
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "fuzz")]
from test_folders import COMMANDS, become_folder, become_link, become_pipe, cut, fill, flip, remove  # noqa: E402
from watched import TooLong, status_of  # noqa: E402

import esker  # noqa: E402

DAMAGES = [cut, flip, flip, flip, fill, remove, become_folder, become_pipe, become_link]
KINDS = {
    "es": {"population": 8, "noise": "counter"},
    "td3": {"generation_steps": 30},
    "cem-rl": {"population": 4, "rl_population": 2},
    "p-cem-rl": {"population": 4, "rl_population": 2},
    "acem-rl": {"population": 4, "results_per_generation": 3, "critic_chunk": 20, "deterministic": True},
    "one-plus-one": {"results_per_generation": 3, "mean_episodes": 2, "critic_chunk": 20, "deterministic": True},
    "aes-rl": {"results_per_generation": 3, "mean_episodes": 2, "critic_chunk": 20, "deterministic": True},
}
GRADIENTS = {"batch_size": 8, "initial_steps": 40}


def make(kind: str, place: Path) -> Path:
    """A finished run of seven generations."""
    extra = {} if kind == "es" else GRADIENTS
    extra = extra | ({"mean_update_param": 5.0} if kind == "aes-rl" else {})
    options = {"hidden": (8, 8), "center_episodes": 1, "quiet": True, "checkpoint_every": 2, "workers": 0, "preset": None}
    run = esker.train(
        "hybrid_worlds:Reach", algo=kind, run_dir=str(place / kind), generations=7, **options, **extra, **KINDS[kind]
    )
    return run.path


def center(path: Path) -> bytes:
    return esker.load(path, "latest").parameters.tobytes()


def damage(folder: Path, draw: random.Random) -> str:
    """Damage one to three files; returns how."""
    told = []
    for _ in range(draw.randint(1, 3)):
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        file, how = draw.choice(files), draw.choice(DAMAGES)
        told.append(f"{how.__name__} {file.relative_to(folder)}")
        how(file, draw)
    return ", ".join(told)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folders", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts, failures = Counter[str](), []
    os.environ["ESKER_TRACEBACK"] = "1"
    with tempfile.TemporaryDirectory(prefix="esker-damages-") as name:
        place = Path(name)
        os.environ["XDG_STATE_HOME"] = name
        os.chdir(place)
        runs, ends = {kind: make(kind, place) for kind in KINDS}, {}
        for kind, path in runs.items():
            whole = Path(shutil.copytree(path, place / f"{kind}-end"))
            ends[kind] = center(esker.resume(whole, generations=9).path)
        for number in range(given.folders):
            if number and number % 20 == 0:
                print(f"{number} folders, {len(failures)} faults", flush=True)
            draw = random.Random(given.seed * 1_000_000 + number)
            kind = draw.choice(list(KINDS))
            damaged = Path(shutil.copytree(runs[kind], place / "damaged", symlinks=True))
            told = damage(damaged, draw)
            try:
                _use(damaged, counts, ends[kind])
            except (Exception, TooLong) as error:
                failures.append(f"{kind}, {told}: {type(error).__name__}: {str(error)[:300]}")
                print("FAULT", number, failures[-1], flush=True)
            shutil.rmtree(damaged)
    print("\n".join(f"{count:5}  {name}" for name, count in sorted(counts.items())))
    print(f"{given.folders} damaged folders, {len(failures)} faults")
    return 1 if failures else 0


def _use(damaged: Path, counts: Counter[str], end: bytes) -> None:
    """Let every command that reads a run read it; `resume` last, to the bits of the undamaged run."""
    for command in ("eval", "export", "report", "plot", "runs"):
        began = time.monotonic()
        status, _ = status_of([command, str(damaged), *COMMANDS[command]])
        counts[f"{command}: status {status}"] += 1
        assert time.monotonic() - began < 30
    status, said = status_of(["resume", str(damaged), "--generations", "9", "--workers", "0", "--quiet"])
    counts[f"resume: status {status}{', damage reported' if 'note: ' in said else ''}"] += 1
    if status == 0:
        assert center(damaged) == end, "other bits than those of the undamaged run"
        counts["resume: bits equal"] += 1


if __name__ == "__main__":
    sys.exit(main())
