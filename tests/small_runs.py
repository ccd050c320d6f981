"""Small real runs that several test modules look at; each is trained once."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import esker

QUICK: dict[str, Any] = {
    "preset": None,
    "quiet": True,
    "workers": 0,
    "population": 8,
    "center_episodes": 2,
    "sigma": 0.1,
    "lr": 0.05,
    "hidden": (8,),
    "noise": "counter",
    "checkpoint_every": 2,
}


@cache
def folder() -> Path:
    """A folder for the runs of this test session."""
    holder = tempfile.TemporaryDirectory(prefix="esker-tests-")
    folder.holder = holder  # type: ignore[attr-defined]  # removed when the process ends
    return Path(holder.name)


def small_run(env: str = "CartPole-v1", seed: int = 0, **options: Any) -> Path:
    """The folder of a small run."""
    name = "-".join([env.replace("/", "_").replace(":", "_"), *(f"{k}={v}" for k, v in sorted(options.items()))])
    path = folder() / name / f"s{seed}"
    if not path.exists():
        esker.train(env, seed=seed, run_dir=str(path), **(QUICK | {"generations": 4} | options))
    return path
