"""How long a run stands still when something dies: the longest wait for a generation after each fault, and before it.

  python benchmarks/recovery.py [-o FILE] [FAULT ...]

Two Ray nodes of one worker each on this machine, real kills, one JSON object per fault. `usual_s` is the median time of a
generation before the fault, `longest_s` the longest one after it; their difference is what the fault cost. For a node
that joins, `used_after_s` is the time from `ray start` to its engine being fed. `-o FILE` adds the readings to a JSON file.
"""

from __future__ import annotations

import argparse
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

GENERATIONS = 20


class Timed(Training):
    """Notes when each generation is seen."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.times: list[float] = []
        super().__init__(*arguments, **options)

    def generation(self, row: dict[str, Any], returns: Any = None) -> None:
        self.times.append(time.monotonic())
        super().generation(row, returns)


def node_of(machines: Any, identity: str) -> Any:
    return next(node for node in machines.cluster.worker_nodes if node.node_id == identity)


def worker_of(training: Training) -> int:
    command = ["pgrep", "-P", str(training.engines()[0][1]), "-f", "esker.engines.worker"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0])


def kill_worker(training: Training, machines: Any) -> None:
    os.kill(worker_of(training), signal.SIGKILL)


def stop_worker(training: Training, machines: Any) -> None:
    os.kill(worker_of(training), signal.SIGSTOP)


def kill_engine(training: Training, machines: Any) -> None:
    os.kill(training.engines()[0][1], signal.SIGKILL)


def stop_engine(training: Training, machines: Any) -> None:
    os.kill(training.other_engine()[1], signal.SIGSTOP)


def kill_node(training: Training, machines: Any) -> None:
    os.kill(machines.raylet(node_of(machines, training.other_engine()[0])), signal.SIGKILL)


def kill_coordinator(training: Training, machines: Any) -> None:
    os.kill(training.pid(), signal.SIGKILL)


def kill_coordinators_node(training: Training, machines: Any) -> None:
    import ray

    home = ray.get(training.coordinator.node.remote(), timeout=60)
    os.kill(machines.raylet(node_of(machines, home)), signal.SIGKILL)


FAULTS: dict[str, Callable[[Any, Any], None]] = {
    "worker killed": kill_worker,
    "worker stopped": stop_worker,
    "node engine killed": kill_engine,
    "node engine stopped": stop_engine,
    "node killed": kill_node,
    "coordinator killed": kill_coordinator,
    "coordinator's node killed": kill_coordinators_node,
}
JOINS = "node joins"


def measure(name: str, machines: Any, folder: Path) -> dict[str, Any]:
    """One fault in the middle of one run."""
    import ray

    nodes = [machines.add() for _ in range(2)]
    training = Timed(
        folder / f"run-{folder.name}", "cluster_worlds:make_slow", generations=GENERATIONS, env_kwargs={"pause": 0.002}
    )
    training.reach(6)
    wait_for(lambda: len(training.engines()) == 2)
    found: dict[str, Any] = {"fault": name}
    at, seen = time.monotonic(), len(training.times)
    if name == JOINS:
        nodes.append(machines.add())
        wait_for(lambda: len(training.engines()) == 3, every=0.1)
        found["used_after_s"] = round(time.monotonic() - at, 2)
    else:
        FAULTS[name](training, machines)
    training.finish()
    before = [b - a for a, b in zip(training.times[1:seen], training.times[2:seen], strict=False)]
    after = [b - max(a, at) for a, b in zip(training.times[seen - 1 :], training.times[seen:], strict=False)]
    for node in nodes:
        machines.remove(node)
    wait_for(lambda: sum(node["Alive"] for node in ray.nodes()) == 1, every=0.5)
    return found | {"usual_s": round(statistics.median(before), 2), "longest_s": round(max(after), 2)}


def main() -> None:
    import ray
    from cluster import store

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", default=[*FAULTS, JOINS], metavar="FAULT", help=", ".join([*FAULTS, JOINS]))
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    machines = conftest.Machines()
    ray.init(address=machines.address, namespace="esker", log_to_driver=False, logging_level="CRITICAL")
    for name in arguments.faults:
        with tempfile.TemporaryDirectory() as folder:
            reading = measure(name, machines, Path(folder))
        print(json.dumps(reading), flush=True)
        if arguments.output is not None:
            store(arguments.output, "recovery", [reading])
    ray.shutdown()
    machines.cluster.shutdown()


if __name__ == "__main__":
    main()
