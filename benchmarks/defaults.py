"""Which defaults make progress on environments that nobody prepared? Candidates on held-out environments, no presets.

    python benchmarks/defaults.py --runs runs/defaults --seeds 0,1 -o benchmarks/results/defaults.json
    python benchmarks/defaults.py --runs runs/defaults --collect -o benchmarks/results/defaults.json   # what is there

Trains every candidate on every environment with equal steps; the same command again resumes. A run's score is the mean of
its centre's last readings (20 episodes), scaled between the untrained centre (0) and the best score of any candidate on that
environment (1). The two robotics and grid environments need `pip install gymnasium-robotics minigrid`; missing ones are left
out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from evidence_machine import commit, machine

from esker.commands.seeds import parse_seeds
from esker.runs.folder import RunFolder

CANDIDATES: dict[str, list[str]] = {
    "sigma 0.02, lr 0.01": ["--sigma", "0.02", "--lr", "0.01"],
    "sigma 0.05, lr 0.01": ["--sigma", "0.05", "--lr", "0.01"],
    "sigma 0.05, lr 0.03": ["--sigma", "0.05", "--lr", "0.03"],
    "sigma 0.1, lr 0.02": ["--sigma", "0.1", "--lr", "0.02"],
    "sigma 0.1, lr 0.05": ["--sigma", "0.1", "--lr", "0.05"],
}
GRID = ["--wrapper", "minigrid.wrappers:ImgObsWrapper", "--wrapper", "gymnasium.wrappers:FlattenObservation"]
LAST_EPISODES = 20


@dataclass(frozen=True)
class World:
    """An environment of the study, and how long it is trained on."""

    env: str
    steps: int
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A short name for tables and folders."""
        return self.env.rpartition(":")[2]


WORLDS = (
    World("CartPole-v1", 200_000),
    World("Acrobot-v1", 400_000),
    World("MountainCar-v0", 400_000),
    World("Pendulum-v1", 1_000_000),
    World("MountainCarContinuous-v0", 1_000_000),
    World("InvertedPendulum-v5", 200_000),
    World("InvertedDoublePendulum-v5", 300_000),
    World("Reacher-v5", 400_000),
    World("LunarLander-v3", 400_000),
    World("Swimmer-v5", 400_000),
    World("Hopper-v5", 300_000),
    World("gymnasium_robotics:PointMaze_OpenDense-v3", 300_000),
    World("minigrid:MiniGrid-Empty-5x5-v0", 200_000, tuple(GRID)),
)


def main() -> int:
    """Train, collect, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="where the run folders are kept")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--workers", default="0")
    parser.add_argument("--collect", action="store_true", help="train nothing")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    if not arguments.collect:
        for seed in parse_seeds(arguments.seeds):
            for world in WORLDS:
                for name, options in CANDIDATES.items():
                    train(world, options, seed, folder_of(arguments.runs, world, name, seed), arguments.workers)
    table = {world.name: rows for world in WORLDS if (rows := rows_of(arguments.runs, world))}
    found = {"command": "python benchmarks/defaults.py", "commit": commit(), "machine": machine()}
    found |= {"steps": {world.name: world.steps for world in WORLDS if world.name in table}, "returns": table}
    arguments.output.write_text(json.dumps(found | {"scores": scores(table)}, indent=1) + "\n")
    print(json.dumps(found["returns"] | {"scores": scores(table)}, indent=1))
    return 0


def folder_of(runs: Path, world: World, candidate: str, seed: int) -> Path:
    """Where a run is."""
    return runs / world.name / candidate.replace(", ", "-").replace(" ", "") / f"s{seed}"


def train(world: World, options: list[str], seed: int, path: Path, workers: str) -> None:
    """Train one run, or resume it; an environment that is not installed is left out."""
    if (path / "config.toml").exists():
        command = ["resume", str(path), "--workers", workers, "--quiet"]
    else:
        own = ["--preset", "none", "--seed", str(seed), "--steps", str(world.steps), "--run-dir", str(path), "--quiet"]
        command = ["train", world.env, *world.options, *options, *own, "--workers", workers]
    done = subprocess.run([sys.executable, "-m", "esker.cli", *command], capture_output=True, text=True)
    if done.returncode:
        print(f"left out: {world.name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)


def rows_of(runs: Path, world: World) -> dict[str, list[list[float]]]:
    """For each candidate: the first and the last centre return of every seed that has used its steps up."""
    rows: dict[str, list[list[float]]] = {}
    for name in CANDIDATES:
        for path in sorted(folder_of(runs, world, name, 0).parent.glob("s*")):
            folder = RunFolder.open(path)
            if folder.status().startswith("finished"):
                rows.setdefault(name, []).append(ends_of(folder.rows(), folder.values()["center_episodes"]))
    return rows


def ends_of(rows: list[dict[str, Any]], episodes: int) -> list[float]:
    """The mean of the centre's first and of its last readings."""
    count = max(1, LAST_EPISODES // episodes)
    values = [row["center_return"] for row in rows]
    return [round(statistics.fmean(values[:1]), 2), round(statistics.fmean(values[-count:]), 2)]


def scores(table: dict[str, dict[str, list[list[float]]]]) -> dict[str, float]:
    """Each candidate's mean over the environments that all candidates have finished."""
    complete = [rows for rows in table.values() if len(rows) == len(CANDIDATES)]
    found: dict[str, list[float]] = {name: [] for name in CANDIDATES}
    for rows in complete:
        start = statistics.fmean(first for runs in rows.values() for first, _ in runs)
        ends = {name: statistics.fmean(last for _, last in runs) for name, runs in rows.items()}
        span = max(max(ends.values()) - start, 1e-9)
        for name, end in ends.items():
            found[name].append(max(-1.0, (end - start) / span))
    return {name: round(statistics.fmean(values), 3) for name, values in found.items() if values}


if __name__ == "__main__":
    sys.exit(main())
