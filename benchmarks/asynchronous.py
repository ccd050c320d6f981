"""Asynchronous against synchronous: wall-clock to a number of training steps with 5 actors, one of them 4 times slower.

    python benchmarks/asynchronous.py [--steps 3000] [--cases p-cem-rl aes-rl] [--no-equal] [--at-once 1] [--json]

Two cores cannot show five actors of unequal speed by computing, so the environment sleeps: 10 ms a step, 40 ms in the slow
actor's process; networks, batches and the share of RL individuals are small (8-8, 8, a tenth), so that the sleeping is
what counts. Published AES-RL compares every individual with 5 episodes of the mean, P-CEM-RL and ACEM-RL evaluate their
mean once in ten individuals: for the same number of training steps AES-RL simulates four times as many, and with one episode
about as many again as it trains on. With `--at-once 4` four runs sleep at the same time, which two cores feel.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np

import esker

ACTORS, SLOWER, PAUSE, LENGTH = 5, 4, 0.010, 50
SMALL = {"hidden": (8, 8), "batch_size": 8, "initial_steps": 500, "actors": ACTORS, "checkpoint_every": 50, "quiet": True}
AES = {"algo": "aes-rl", "mean_update_param": 10.0, "rl_ratio": 0.1, "critic_chunk": 100}
CASES = {
    "p-cem-rl": {"algo": "p-cem-rl", "rl_population": 1},
    "p-cem-rl, parallel critic": {"algo": "p-cem-rl", "rl_population": 1, "parallel_critic": True, "critic_chunk": 100},
    "acem-rl": {"algo": "acem-rl", "rl_ratio": 0.1, "critic_chunk": 100},
    "aes-rl": AES,
    "aes-rl, mean_episodes 5": AES | {"mean_episodes": 5},
}


class Sleepy(gym.Env):
    """Hold a point at the origin; every step takes its time, and more so in the slow actor's process."""

    def __init__(self, slower: float = SLOWER) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (1,))
        self.action_space = gym.spaces.Box(-1.0, 1.0, (1,))
        worker = Path(sys.argv[0]).stem == "pool_worker"
        self.pause = PAUSE * (slower if worker and sys.argv[-1] == "0" else 1.0) if worker else 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = self.np_random.uniform(-1, 1), 0
        return np.array([self.place], dtype=np.float32), {}

    def step(self, action):
        time.sleep(self.pause)
        self.place += 0.2 * float(action[0])
        self.steps += 1
        return np.array([self.place], dtype=np.float32), -abs(self.place), False, self.steps >= LENGTH, {}


def measure(options: dict, steps: int, slower: float) -> dict[str, float]:
    """Seconds until `steps` training steps, from the end of the first generation on; and steps simulated."""
    with tempfile.TemporaryDirectory() as folder:
        run = esker.train(
            "asynchronous:Sleepy",
            run_dir=f"{folder}/run",
            env_kwargs={"slower": slower},
            training_steps=steps,
            **SMALL | options,
        )
        first, last = run.history[0], run.history[-1]
    trained = last["training_steps"] - first["training_steps"]
    seconds = (last["wall_time"] - first["wall_time"]) * steps / trained  # start-up and warm-up are in the first row
    return {"seconds": seconds, "simulated": (last["env_steps"] - first["env_steps"]) / trained}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--equal", action=argparse.BooleanOptionalAction, default=True, help="also with equal actors")
    parser.add_argument("--at-once", type=int, default=1, help="runs at the same time")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.steps < 2_000:
        parser.error(f"--steps is {options.steps}; expected at least 2000, since the first generations are start-up")
    sys.path.insert(0, str(Path(__file__).parent))
    speeds = (SLOWER, 1.0) if options.equal else (SLOWER,)
    runs = [(name, slower) for name in options.cases for slower in speeds]
    with ThreadPoolExecutor(options.at_once) as threads:
        measured = threads.map(partial(_in_a_process, options.steps), runs)
        seconds = dict(zip(runs, measured, strict=True))
    found = {}
    base = seconds[options.cases[0], SLOWER]["seconds"]
    for name in options.cases:
        unequal = seconds[name, SLOWER]
        one = {
            "one slower": unequal["seconds"],
            "simulated": unequal["simulated"],
            f"to {options.cases[0]}": unequal["seconds"] / base,
        }
        if options.equal:
            one |= {"equal": seconds[name, 1.0]["seconds"], "slowdown": unequal["seconds"] / seconds[name, 1.0]["seconds"]}
        found[name] = one
        if not options.json:
            equal = f", {one['equal']:.0f} s with equal actors" if options.equal else ""
            print(
                f"{name}: {unequal['seconds']:.0f} s{equal}; {unequal['seconds'] / base:.2f} of {options.cases[0]}'s time;",
                end=" ",
            )
            print(f"{unequal['simulated']:.1f} simulated steps for each training step")
    if options.json:
        print(json.dumps({"steps": options.steps, "at once": options.at_once, "cases": found}, indent=1))


def _in_a_process(steps: int, run: tuple[str, float]) -> dict[str, float]:
    """One measurement in its own process, so that several can run at once."""
    name, slower = run
    code = f"import json, asynchronous as a; print(json.dumps(a.measure(a.CASES[{name!r}], {steps}, {slower})))"
    here = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code], cwd=here, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
