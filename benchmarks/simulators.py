"""One policy in two simulators: MuJoCo Warp's worlds on a device, and Gymnasium's on the CPU, from equal starts.

    python benchmarks/simulators.py halfcheetah/ars humanoid/ars --episodes 100 --out simulators.json

Needs `esker[warp]`; `--device cpu` runs Warp without a GPU.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from esker.config.device import device_name
from esker.engines.engine import InlineEngine
from esker.engines.plan import Plan
from esker.noise.address import Purpose
from esker.runs.loading import environment_of, open_checkpoint, policy_of, policy_task
from esker.tasks.device import DeviceEpisodes
from esker.tasks.task import Job, Task


def main() -> None:
    """Evaluate each policy in both and write the returns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="+", help="run folders, or presets that have a policy")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    for policy in arguments.policies:
        rows.append({"policy": policy, **compare(policy, arguments.episodes, arguments.device)})
        print(json.dumps(rows[-1]), flush=True)
        if arguments.out:
            found = {"device": device_name(arguments.device), "episodes": arguments.episodes, "rows": rows}
            arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def compare(policy: str, episodes: int, device: str) -> dict[str, Any]:
    """Returns and lengths of a policy in both simulators, as means and deviations, and how well episodes agree."""
    trained = open_checkpoint(policy)
    environment = environment_of(trained.config)
    task = replace(policy_task(trained, environment), center_episodes=episodes, center_purpose=Purpose.EVALUATION)
    job = Job.of_center(trained.snapshot.arrays["center"], policy_of(trained).normalizer)
    here, seconds_here = played(task, job, episodes)
    there, seconds_there = played(DeviceEpisodes(task, "warp", device, episodes), job, episodes)
    return {
        "env": environment.name,
        "gymnasium": summary(here) | {"seconds": seconds_here},
        "warp": summary(there) | {"seconds": seconds_there},
        "correlation": float(np.corrcoef([r.total for r in here], [r.total for r in there])[0, 1]),
    }


def played(task: Task, job: Job, episodes: int) -> tuple[list[Any], float]:
    """The results of the policy's episodes, and the seconds they took."""
    plan, engine = Plan(0, center=episodes), InlineEngine(task, None)
    began = time.monotonic()
    engine.evaluate(job, plan)
    engine.close()
    return plan.of_center(), time.monotonic() - began


def summary(results: list[Any]) -> dict[str, float]:
    """Mean, standard deviation and mean length."""
    totals = np.array([result.total for result in results])
    length = float(np.mean([result.length for result in results]))
    return {"mean": float(totals.mean()), "std": float(totals.std(ddof=1)), "length": length}


if __name__ == "__main__":
    main()
