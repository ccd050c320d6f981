"""How long a run stands still when something dies: the longest wait for a generation after each fault, and before it.

  python benchmarks/recovery.py

Two Ray nodes of one worker each on this machine, real kills, one JSON object per fault. `usual_s` is the median time of a
generation before the fault, `longest_s` the longest one after it; their difference is what the fault cost.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "cluster"))

import conftest
from cluster_helpers import Training, wait_for

GENERATIONS = 30


class Timed(Training):
    """Notes when each generation is seen."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.times: list[float] = []
        super().__init__(*arguments, **options)

    def generation(self, row: dict[str, Any], returns: Any = None) -> None:
        self.times.append(time.monotonic())
        super().generation(row, returns)


def engines(training: Training) -> list[tuple[str, int]]:
    import ray

    return list(ray.get(training.coordinator.engines.remote(), timeout=60))


def node_of(machines: Any, identity: str) -> Any:
    return next(node for node in machines.cluster.worker_nodes if node.node_id == identity)


def kill_worker(training: Training, machines: Any) -> None:
    found = subprocess.run(["pgrep", "-P", str(engines(training)[0][1])], capture_output=True, text=True, check=True)
    os.kill(int(found.stdout.split()[0]), signal.SIGKILL)


def kill_engine(training: Training, machines: Any) -> None:
    os.kill(engines(training)[0][1], signal.SIGKILL)


def kill_node(training: Training, machines: Any) -> None:
    import ray

    home = ray.get(training.coordinator.node.remote(), timeout=60)
    other = next(identity for identity, _ in engines(training) if identity != home)
    os.kill(machines.raylet(node_of(machines, other)), signal.SIGKILL)


def kill_coordinator(training: Training, machines: Any) -> None:
    os.kill(training.pid(), signal.SIGKILL)


def kill_coordinators_node(training: Training, machines: Any) -> None:
    import ray

    home = ray.get(training.coordinator.node.remote(), timeout=60)
    os.kill(machines.raylet(node_of(machines, home)), signal.SIGKILL)


FAULTS: dict[str, Callable[[Any, Any], None]] = {
    "worker killed": kill_worker,
    "node engine killed": kill_engine,
    "node killed": kill_node,
    "coordinator killed": kill_coordinator,
    "coordinator's node killed": kill_coordinators_node,
}


def measure(name: str, machines: Any, folder: Path) -> dict[str, Any]:
    """One fault in the middle of one run."""
    nodes = [machines.add() for _ in range(2)]
    training = Timed(folder / "run", "cluster_worlds:make_slow", generations=GENERATIONS, env_kwargs={"pause": 0.002})
    training.reach(10)
    wait_for(lambda: len(engines(training)) == 2)
    at, seen = time.monotonic(), len(training.times)
    FAULTS[name](training, machines)
    training.finish(300)
    before = [b - a for a, b in zip(training.times[1:seen], training.times[2:seen], strict=False)]
    after = [b - max(a, at) for a, b in zip(training.times[seen - 1 :], training.times[seen:], strict=False)]
    for node in nodes:
        machines.remove(node)
    return {"fault": name, "usual_s": round(statistics.median(before), 2), "longest_s": round(max(after), 2)}


def main() -> None:
    import ray

    machines = conftest.Machines()
    ray.init(address=machines.address, namespace="esker", log_to_driver=False, logging_level="CRITICAL")
    for name in FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(name, machines, Path(folder))), flush=True)
    ray.shutdown()
    machines.cluster.shutdown()


if __name__ == "__main__":
    main()
