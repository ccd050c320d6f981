"""What must work with every supported version: smoke.py RUNS [without-torch]. Its last line names the versions."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import subprocess
import sys
from pathlib import Path

SMALL = ["--generations", "2", "--population", "8", "--hidden", "8", "--preset", "none", "--noise", "counter", "--quiet"]
PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "ray", "rich", "safetensors")


def esker(*arguments: str) -> str:
    """Run a command; one that fails or warns of a deprecation ends this script."""
    done = subprocess.run([sys.executable, "-m", "esker", *arguments], capture_output=True, text=True, timeout=600)
    print("$ esker", *arguments, f"-> {done.returncode}\n{done.stdout}{done.stderr}")
    if done.returncode != 0 or "DeprecationWarning" in done.stderr:
        sys.exit(1)
    return done.stdout


def without_torch(runs: Path) -> None:
    """Evaluate stored runs."""
    for name in ("es-counter", "gru", "es-low-rank"):
        esker("eval", shutil.copytree(runs / name, name), "--episodes", "2", "--workers", "1")


def everything(runs: Path) -> None:
    """Train, resume, read old runs, step MuJoCo natively and through Gymnasium, use Ray, evolve a module."""
    esker("train", "CartPole-v1", "--workers", "1", "--run-dir", "run", *SMALL)
    esker("resume", "run", "--generations", "3", "--quiet")
    esker("eval", "run", "--episodes", "2", "--workers", "0")
    esker("report", "run")
    esker("resume", shutil.copytree(runs / "es-counter", "old"), "--quiet", "--inexact")
    esker(
        "train",
        "Pendulum-v1",
        "--algo",
        "td3",
        "--generations",
        "1",
        "--generation-steps",
        "400",
        "--quiet",
        "--run-dir",
        "td3",
    )
    for way in ("native", "gymnasium"):
        esker("train", "Hopper-v5", "--workers", "0", "--vectorizer", way, "--run-dir", way, *SMALL)
    import esker as library

    assert (library.load("native").parameters == library.load("gymnasium").parameters).all()
    esker("train", "CartPole-v1", "--engine", "ray", "--workers", "1", "--run-dir", "ray", *SMALL)
    import torch

    evolution = library.Evolution(
        torch.nn.Linear(2, 2), lambda model: -float(model.weight.square().sum()), workers=0, quiet=True
    )
    evolution.run(2, report_every=None)


def main() -> None:
    runs, how = Path(sys.argv[1]), sys.argv[2:]
    without_torch(runs) if how == ["without-torch"] else everything(runs)
    found = {distribution.name.lower(): distribution.version for distribution in importlib.metadata.distributions()}
    print(f"Python {platform.python_version()},", ", ".join(f"{name} {found[name]}" for name in PACKAGES if name in found))


if __name__ == "__main__":
    main()
