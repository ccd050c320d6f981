"""What `esker.Evolution` learns on the two environments of the examples, over several seeds.

    python benchmarks/evolution_learning.py cartpole --seeds 5   # goal 475, five times in a row, 200 iterations
    python benchmarks/evolution_learning.py lunar_lander --seeds 3 --iterations 300
    python benchmarks/evolution_learning.py cartpole --settings evolution-module    # that project's settings, verbatim

Prints a line per seed, a table of the curve, and the same as JSON on the last line.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import torch

import esker

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
GOALS = {"cartpole": 475, "lunar_lander": 200}


def learn(name: str, settings: str, seed: int, iterations: int, workers: int) -> dict[str, Any]:
    """One run of an example's policy and reward with its settings."""
    example = importlib.import_module(name)
    torch.manual_seed(seed)
    evolution = esker.Evolution(
        example.policy(),
        example.reward,
        goal=GOALS[name],
        patience=5,
        seed=seed,
        workers=workers,
        quiet=True,
        **example.SETTINGS[settings],
    )
    evolution.run(iterations, report_every=None)
    assert evolution.outcome is not None
    return {
        "seed": seed,
        "iterations": evolution.iteration,
        "solved": evolution.outcome.goal_reached,
        "best": evolution.best_reward,
        "evaluations": evolution.history[-1]["env_steps"],
        "seconds": round(evolution.history[-1]["wall_time"], 1),
        "curve": [row["center_return"] for row in evolution.history],
    }


def table(runs: list[dict[str, Any]], points: int = 10) -> list[str]:
    """The centre's reward at some iterations: each seed, and the median; a run that was solved keeps its last value."""
    longest = max(run["iterations"] for run in runs)
    lines = [f"{'iteration':>10}" + "".join(f"{'seed ' + str(run['seed']):>10}" for run in runs) + f"{'median':>10}"]
    for point in sorted({round((i + 1) * longest / points) for i in range(points)} - {0}):
        values = [run["curve"][min(point, len(run["curve"])) - 1] for run in runs]
        lines.append(f"{point:>10}" + "".join(f"{value:>10.1f}" for value in [*values, statistics.median(values)]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", choices=GOALS)
    parser.add_argument("--settings", choices=("esker", "evolution-module"), default="esker")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    runs = []
    for seed in range(options.seeds):
        run = learn(options.example, options.settings, seed, options.iterations, options.workers)
        runs.append(run)
        verdict = "solved" if run["solved"] else "not solved"
        print(
            f"seed {seed}: {verdict}, {run['iterations']} iterations, best {run['best']:.1f}, {run['seconds']} s", flush=True
        )
    print("\n".join(table(runs)))
    print(json.dumps({"example": options.example, "settings": options.settings, "runs": runs}))


if __name__ == "__main__":
    main()
