"""What `esker.Evolution` learns on the two environments of the examples, over several seeds.

    python benchmarks/evolution_learning.py cartpole --seeds 5   # goal 475, five times in a row, 200 iterations
    python benchmarks/evolution_learning.py lunar_lander --seeds 3 --iterations 300
    python benchmarks/evolution_learning.py cartpole --settings evolution-module    # that project's settings, verbatim

Prints a line per seed and a table of the curve; `-o FILE` stores every seed's curve, with median and worst. With
`--runs FOLDER` every seed has a run folder there, and the same command with more iterations goes on where it stopped.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
from pathlib import Path
from typing import Any

import torch

import esker

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))


def learn(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """One run of an example's policy and reward with its settings."""
    example = importlib.import_module(options.example)
    torch.manual_seed(seed)
    model = example.policy()
    folder = None if options.runs is None else options.runs / f"{options.example}-{options.settings}-{seed}"
    if folder is not None and folder.exists():
        evolution = esker.Evolution.resume(folder, model, example.reward, workers=options.workers)
    else:
        evolution = esker.Evolution(
            model,
            example.reward,
            goal=example.GOAL,
            patience=5,
            seed=seed,
            workers=options.workers,
            quiet=True,
            run_dir=None if folder is None else str(folder),
            **example.SETTINGS[options.settings],
        )
    if evolution.iteration < options.iterations:
        evolution.run(options.iterations - evolution.iteration, report_every=None)
    last = evolution.history[-1]
    return {
        "seed": seed,
        "iterations": evolution.iteration,
        "solved": last["goal_streak"] >= 5,
        "best": evolution.best_reward,
        "evaluations": last["env_steps"],
        "seconds": round(last["wall_time"], 1),
        "curve": [row["center_return"] for row in evolution.history],
    }


def summary(options: argparse.Namespace, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The runs with what they have in common."""
    command = f"python benchmarks/evolution_learning.py {options.example} --settings {options.settings}"
    best = [run["best"] for run in runs]
    return {
        "command": f"{command} --seeds {options.seeds} --iterations {options.iterations}",
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "torch": torch.__version__},
        "solved": f"{sum(run['solved'] for run in runs)} of {len(runs)}",
        "iterations": {
            "median": statistics.median(r["iterations"] for r in runs),
            "worst": max(r["iterations"] for r in runs),
        },
        "best": {"median": statistics.median(best), "worst": min(best)},
        "runs": runs,
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
    parser.add_argument("example", choices=("cartpole", "lunar_lander"))
    parser.add_argument("--settings", choices=("esker", "evolution-module"), default="esker")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=Path, help="folder of run folders, to go on from")
    parser.add_argument("-o", "--output", type=Path, help="where to store the curves, as JSON")
    options = parser.parse_args()
    runs = []
    for seed in range(options.seeds):
        run = learn(options, seed)
        runs.append(run)
        verdict = "solved" if run["solved"] else "not solved"
        print(
            f"seed {seed}: {verdict}, {run['iterations']} iterations, best {run['best']:.1f}, {run['seconds']} s", flush=True
        )
    print("\n".join(table(runs)))
    if options.output is not None:
        options.output.write_text(json.dumps(summary(options, runs), indent=1) + "\n")


if __name__ == "__main__":
    main()
