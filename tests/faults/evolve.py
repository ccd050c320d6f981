"""A run of `esker.Evolution` that starts or resumes: python evolve.py RUN_DIR ITERATIONS"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

import esker


def reward(model: torch.nn.Linear) -> float:
    """How close the weights are to one."""
    time.sleep(0.01)
    return -float((model.weight - 1).square().sum())


def main(path: str, iterations: int) -> None:
    """Go on from wherever the folder is."""
    torch.manual_seed(0)
    model, options = torch.nn.Linear(4, 4), {"workers": 2, "quiet": True}
    if (Path(path) / "config.toml").exists():
        evolution = esker.Evolution.resume(path, model, reward, **options)
    else:
        evolution = esker.Evolution(
            model, reward, run_dir=path, population=8, checkpoint_every=3, noise="counter", **options
        )
    if evolution.iteration < iterations:
        evolution.run(iterations - evolution.iteration, report_every=None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
