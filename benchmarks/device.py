"""Measure a GPU as a machine with thousands of slots: policies alone, bare physics, whole generations, learning.

    python benchmarks/device.py policies --out policies.json
    python benchmarks/device.py bare --env Humanoid-v5 --members 8192 --seconds 30 --out bare.json
    python benchmarks/device.py generations --env Humanoid-v5 --members 8192 --seconds 120 --out generations.json
    python benchmarks/device.py generations --env Humanoid-v5 --members 8192 --seeds 8 --seconds 120 --out seeds.json
    python benchmarks/device.py learn --env HalfCheetah-v5 --members 1024 --seconds 120 --out learn.json

`--device cpu` runs everything without a GPU; add `--world torch --env Pendulum-v1` where MuJoCo Warp is not installed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import esker
from esker.api import train_seeds
from esker.config.device import device_name
from esker.noise.device import DevicePopulation
from esker.noise.lowrank import LowRankNoise
from esker.noise.population import Population
from esker.noise.table import NoiseTable, TableNoise
from esker.policies.device import open_rows
from esker.policies.mlp import MLP
from esker.system.cuda_graph import Graphed
from esker.worlds.device import open_world, world_for
from esker.worlds.environments import resolve


def main() -> None:
    """Run one measurement and write its JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["policies", "bare", "generations", "learn"])
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("--world")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--members", type=int, default=8192)
    parser.add_argument("--seeds", type=int, default=1, help="runs in one batch, which share the members")
    parser.add_argument("--sizes", default="376,1024,1024,17", help="of the network of `policies`")
    parser.add_argument("--seconds", type=float, default=60.0, help="wall-clock budget")
    parser.add_argument("--set", action="append", default=[], help="option of esker.train, as sigma=0.05")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        torch.set_num_threads(1)
    measure = {"policies": policies, "bare": bare, "generations": generations, "learn": generations}[arguments.what]
    began = time.monotonic()
    found = {
        "what": arguments.what,
        "device": device_name(arguments.device),
        "torch": torch.__version__,
        "env": arguments.env,
        "members": arguments.members,
        **measure(arguments),
        "seconds": time.monotonic() - began,
    }
    print(json.dumps(found))
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def timed(work: Any, device: torch.device, seconds: float) -> float:
    """Seconds of one call, the best of three rounds of many calls within a budget."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    work()
    wait()
    began = time.perf_counter()
    work()
    wait()
    once = max(time.perf_counter() - began, 1e-6)
    calls = max(1, int(seconds / 3 / once))
    rounds = []
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(calls):
            work()
        wait()
        rounds.append((time.perf_counter() - began) / calls)
    return min(rounds)


def policies(arguments: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of one forward pass of all members, full and low-rank, with float32 and TF32 products."""
    device = torch.device(arguments.device)
    network = MLP(tuple(int(size) for size in arguments.sizes.split(",")))
    center = network.initial(np.random.default_rng(0))
    low_rank = LowRankNoise(0, tuple(network.shapes.values()), 1)
    table = TableNoise(NoiseTable.create(0, max(25_000_000, 2 * network.dimension)), 0, network.dimension)
    found: dict[str, Any] = {"sizes": network.sizes}
    stream = torch.cuda.Stream() if device.type == "cuda" else None
    for name, noise in (("low-rank", low_rank), ("full", table)):
        for precise in (True,) if name == "full" else (True, False):
            torch.backends.cuda.matmul.allow_tf32 = not precise
            with torch.no_grad(), torch.cuda.stream(stream):
                rows = open_rows(network, noise, arguments.members, device)
                population = DevicePopulation(noise, device)
                population.begin(Population(center, 0.02, 0, True, noise, range(arguments.members)))
                rows.begin(0, population)
                began = time.perf_counter()
                rows.load(population, torch.arange(arguments.members, device=device), np.arange(arguments.members))
                if stream is not None:
                    torch.cuda.synchronize()
                loaded = time.perf_counter() - began
                inputs = torch.randn(arguments.members, network.sizes[0], device=device)
                forward = Graphed(lambda rows=rows, inputs=inputs: rows.forward(inputs), device)
                key = f"{name}, {'float32' if precise else 'tf32'}"
                milliseconds = 1e3 * timed(forward, device, arguments.seconds / 8)
                found[key] = {"forward_ms": milliseconds, "load_s": loaded, "captured": forward.captured}
                del rows, forward
    return found


def bare(arguments: argparse.Namespace) -> dict[str, Any]:
    """Steps/s of the worlds alone, with constant actions: of the physics where Warp steps it, and of the whole world."""
    device = torch.device(arguments.device)
    environment, _ = resolve(arguments.env)
    kind = arguments.world or world_for(environment)
    stream = torch.cuda.Stream() if device.type == "cuda" else None
    rows = arguments.members
    with torch.no_grad(), torch.cuda.stream(stream):
        began = time.perf_counter()
        worlds: Any = open_world(kind, environment, rows, device)
        worlds.reset(torch.arange(rows, device=device), np.arange(rows))
        space = environment.make().action_space
        action = torch.as_tensor(np.stack([space.sample() for _ in range(rows)]), device=device)
        worlds.step(action)
        found: dict[str, Any] = {"world": kind, "open_s": time.perf_counter() - began}
        if hasattr(worlds, "_physics"):
            found["physics_steps_per_second"] = rows / timed(
                lambda: worlds._launch(worlds._physics), device, arguments.seconds / 2
            )
        found["world_steps_per_second"] = rows / timed(lambda: worlds.step(action), device, arguments.seconds / 2)
    return found


def train(arguments: argparse.Namespace, folder: str, **options: Any) -> list[Any]:
    """Runs on the device within the budget of time: one, or several seeds in one batch that share the members."""
    given = dict(pair.split("=", 1) for pair in arguments.set)
    config = {"population": arguments.members // arguments.seeds // 2 * 2, **options, **given}
    place = {"device": arguments.device, "run_dir": folder} | ({"world": arguments.world} if arguments.world else {})
    if arguments.seeds > 1:
        return train_seeds(arguments.env, range(arguments.seeds), preset=None, config=config, **place)
    return [esker.train(arguments.env, preset=None, config=config, **place)]


def generations(arguments: argparse.Namespace) -> dict[str, Any]:
    """Useful steps/s over whole generations, update and commit included; the first one, which warms up, is left out."""
    with tempfile.TemporaryDirectory() as folder:
        runs = train(arguments, f"{folder}/run", wall_time=arguments.seconds, sigma=0.02, hidden=(64, 64))
        histories = [run.history for run in runs]
        judged = [run.evaluate(episodes=20).summary() for run in runs] if arguments.what == "learn" else []
    kept = ("generation", "env_steps", "wall_time", "return_mean", "center_return", "episode_length_mean")
    return {
        "seeds": arguments.seeds,
        "generations": [len(rows) for rows in histories],
        "steps_per_second": rate(histories),
        "rows": [{name: row[name] for name in kept} for row in histories[0]],
        "judged_in_gymnasium": judged,
    }


def rate(histories: list[list[dict[str, Any]]]) -> float | None:
    """Steps/s of all runs from the end of the slowest first generation to the last moment at which all were training."""
    begin = max(rows[0]["wall_time"] for rows in histories)
    end = min(rows[-1]["wall_time"] for rows in histories)
    if end <= begin:
        return None
    points = [([row["wall_time"] for row in rows], [row["env_steps"] for row in rows]) for rows in histories]
    return float(sum(np.interp(end, *each) - np.interp(begin, *each) for each in points) / (end - begin))


if __name__ == "__main__":
    main()
