"""Check on a GPU what must hold there bit for bit: equal seeds, any number of workers, resumes, a kill, shares of a GPU.

    python benchmarks/device_exact.py --out exact.json
    python benchmarks/device_exact.py warp-cheetah fleet        # some of them

The checks of MuJoCo Warp need `esker[warp]`, Pong `esker[atari]`, `fleet` `esker[ray]`. `--device cpu` tries the script
without a GPU, all but `fleet`.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import esker
from esker.config.device import device_name
from esker.runs import checkpoints

GENERATIONS = 3
SHARES = ((1, 1.0), (2, 0.5), (3, 0.25))  # engines, and the share of a GPU that each holds


def main() -> None:
    """Run the checks that were named, or all, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", help=f"of {', '.join(CHECKS)}; default: all")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if unknown := set(arguments.checks) - set(CHECKS):
        parser.error(f"unknown check {unknown.pop()!r}; expected some of {', '.join(CHECKS)}")
    found = {"device": device_name(arguments.device), "torch": torch.__version__, "checks": {}}
    for name in arguments.checks or CHECKS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            result = CHECKS[name](Path(folder), arguments.device)
        found["checks"][name] = {**result, "seconds": round(time.monotonic() - began, 1)}
        print(json.dumps({name: found["checks"][name]}), flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def in_order(env: str, members: int) -> Callable[[Path, str], dict[str, Any]]:
    """MuJoCo Warp's sums in order: two runs, and one that is resumed after a generation; beside one without the order."""

    def check(folder: Path, device: str) -> dict[str, Any]:
        options = {"device": device, "world": "warp", "population": members, "network": "linear", "sigma": 0.05}
        first = trained(env, folder / "first", deterministic=True, **options)
        second = trained(env, folder / "second", deterministic=True, **options)
        resumed = trained(env, folder / "resumed", generations=1, deterministic=True, **options)
        esker.resume(resumed, generations=GENERATIONS, quiet=True)
        plain = trained(env, folder / "plain", **options)
        same = [equal(first, other) for other in (second, resumed, plain)]
        return {"env": env, "members": members, "equal twice": same[0], "equal resumed": same[1], "plain equal": same[2]}

    return check


def served(env: str, **own: Any) -> Callable[[Path, str], dict[str, Any]]:
    """Policies on the device for environments that 4, 2 and 3 workers step, the last run resumed."""

    def check(folder: Path, device: str) -> dict[str, Any]:
        options = {"device": device, "world": "cpu", "population": 32, "sigma": 0.05, **own}
        first = trained(env, folder / "first", workers=4, **options)
        second = trained(env, folder / "second", workers=2, **options)
        resumed = trained(env, folder / "resumed", workers=3, generations=1, **options)
        esker.resume(resumed, generations=GENERATIONS, quiet=True)
        return {"env": env, "equal for any workers": equal(first, second), "equal resumed": equal(first, resumed)}

    return check


def killed(folder: Path, device: str) -> dict[str, Any]:
    """A run with policies on the device that is ended by SIGKILL and resumed, beside one that was not."""
    options = "--preset none --world cpu --workers 3 --population 32 --generations 6 --seed 3 --checkpoint-every 1 --quiet"
    train = [sys.executable, "-m", "esker", "train", "HalfCheetah-v5", *options.split(), "--max-episode-steps", "300"]
    train += ["--device", device]
    whole, stopped = folder / "whole", folder / "stopped"
    subprocess.run([*train, "--run-dir", str(whole)], check=True)
    process, journal = subprocess.Popen([*train, "--run-dir", str(stopped)]), stopped / "journal.jsonl"
    while not journal.exists() or len(journal.read_text().splitlines()) < 2:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    subprocess.run([sys.executable, "-m", "esker", "resume", str(stopped), "--quiet"], check=True)
    return {"env": "HalfCheetah-v5", "equal after SIGKILL": equal(whole, stopped)}


def fleet(folder: Path, device: str) -> dict[str, Any]:
    """A low-rank population on engines of a Ray cluster that share the GPU, beside this process."""
    import ray

    ray.init(num_gpus=1, num_cpus=6, include_dashboard=False, log_to_driver=False)
    inputs = torch.randn(64, 32, generator=torch.Generator().manual_seed(1))

    def reward(members: Any) -> torch.Tensor:
        seen = inputs.to(next(iter(members.module.parameters())).device)
        return -((members(seen) - seen[:, :8].cumsum(1)) ** 2).mean((1, 2))

    def evolved(**engines: Any) -> torch.Tensor:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 8))
        options = {"population": 64, "sigma": 0.1, "lr": 0.05, "noise": "low-rank", "members_per_batch": 16, "final": "last"}
        esker.Evolution(module, reward_batch=reward, device=device, quiet=True, **options, **engines).run(6)
        return nn.utils.parameters_to_vector(module.parameters()).detach().cpu()

    here, found = evolved(), {}
    for engines, share in SHARES:
        there = evolved(engine="ray", address="auto", workers=engines, gpus_per_node=share)
        found[f"equal with {engines} × {share:g} GPU"] = torch.equal(here, there)
    ray.shutdown()
    return found


def trained(env: str, folder: Path, generations: int = GENERATIONS, **options: Any) -> Path:
    """The folder of a short run."""
    esker.train(
        env, preset=None, run_dir=str(folder), generations=generations, seed=3, checkpoint_every=1, quiet=True, **options
    )
    return folder


def equal(one: Path, other: Path) -> bool:
    """Whether two runs ended with the same centre, bit for bit."""
    return bool(np.array_equal(*(center(folder) for folder in (one, other))))


def center(folder: Path) -> np.ndarray:
    """The parameters that a run ended with."""
    return checkpoints.read(folder / "checkpoints" / (folder / "latest").read_text().strip()).arrays["center"]


CHECKS: dict[str, Callable[[Path, str], dict[str, Any]]] = {
    "served-lstm": served("CartPole-v1", network="lstm"),
    "served-cheetah": served("HalfCheetah-v5", max_episode_steps=200),
    "served-pong": served("ALE/Pong-v5", network="nature-cnn", max_episode_steps=60, reference_frames=8),
    "killed": killed,
    "warp-cheetah": in_order("HalfCheetah-v5", 256),
    "warp-humanoid": in_order("Humanoid-v5", 128),
    "warp-walker": in_order("Walker2d-v5", 256),
    "fleet": fleet,
}


if __name__ == "__main__":
    main()
