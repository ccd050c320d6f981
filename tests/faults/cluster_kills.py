"""Random kills on a real Ray cluster of two nodes (worker, engine, coordinator, node): the bits are those of one process.

`python tests/faults/cluster_kills.py --kills 40`
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from kills import MARK, marked  # noqa: E402

sys.path.insert(0, str(HERE.parent / "cluster"))  # its conftest, not that of all tests
MARKED = Path(tempfile.gettempdir()) / f"cluster-{os.getpid()}"
os.environ[MARK] = str(MARKED)  # every process of the cluster inherits it
import ray  # noqa: E402
from cluster_helpers import Training, undisturbed, wait_for  # noqa: E402
from conftest import Machines  # noqa: E402
from test_hybrids_on_ray import CEM, ENV, P_CEM, Hybrid, alone  # noqa: E402

SLOW = "cluster_worlds:make_slow"
PAUSE: dict[str, Any] = {"env_kwargs": {"pause": 0.002}, "sigma": 0.5}
KINDS: dict[str, tuple[type[Training], str, dict[str, Any]]] = {
    "es": (Training, SLOW, PAUSE | {"generations": 24}),
    "pgpe": (Training, SLOW, PAUSE | {"generations": 24, "strategy": "pgpe"}),
    "cem-rl": (Hybrid, ENV, CEM | {"generations": 10, "workers": 2}),
    "p-cem-rl": (Hybrid, ENV, P_CEM | {"generations": 10, "workers": 2}),
}
SIGNALS = {
    "worker": [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSTOP],
    "engine": [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP],
    "coordinator": [signal.SIGKILL, signal.SIGHUP],
    "node": [signal.SIGKILL],
}


def expected(kind: str, place: Path) -> bytes:
    """The state that one process comes to."""
    training, env, options = KINDS[kind]
    path = place / f"alone-{kind}"
    return alone(path, **options) if training is Hybrid else undisturbed(path, env, **options)


def workers_of(engine: int) -> list[int]:
    """The worker processes below an engine."""
    found = subprocess.run(["pgrep", "-P", str(engine), "-f", "esker.engines.*worker"], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def add_node(machines: Machines) -> None:
    """Add a node; Ray gives one up that a busy machine starts too slowly."""
    for _ in range(5):
        try:
            machines.add()
            return
        except Exception as error:
            print(f"a node did not start: {error}", flush=True)


def strike(training: Training, machines: Machines, draw: random.Random) -> str | None:
    """Disturb somebody; returns whom and how."""
    what = draw.choice(list(SIGNALS))
    number = draw.choice(SIGNALS[what])
    engines = training.engines()
    if not engines:
        return None
    if what == "node":
        home = ray.get(training.coordinator.node.remote(), timeout=60)
        able = [node for node in machines.cluster.worker_nodes if node.node_id != home or not isinstance(training, Hybrid)]
        node = draw.choice(able)
        os.kill(machines.raylet(node), number)
        machines.remove(node, graceful=False)
        add_node(machines)
        return f"{what} {number.name}"
    if what == "worker":
        pids = workers_of(draw.choice(engines)[1])
    else:
        pids = [draw.choice(engines)[1]] if what == "engine" else [training.pid()]
    if not pids:
        return None
    try:
        os.kill(draw.choice(pids), number)
    except ProcessLookupError:
        return None
    return f"{what} {number.name}"


def disturb(training: Training, machines: Machines, draw: random.Random, counts: Counter[str], most: int) -> bytes:
    """Take one run to its end through kills; returns its bits."""
    generations = training._options["generations"]
    while counts["kills"] < most and training._thread.is_alive() and len(training.rows) < generations - 3:
        training.reach(len(training.rows) + 1)
        time.sleep(draw.uniform(0, 1.5))
        try:
            struck = strike(training, machines, draw)
        except (ray.exceptions.RayError, ValueError):  # the coordinator is away, or the run has ended
            continue
        if struck is not None:
            counts["kills"] += 1
            counts[struck] += 1
    return training.finish()


def campaign(machines: Machines, place: Path, given: argparse.Namespace, counts: Counter[str]) -> list[str]:
    """Runs of every kind, one after the other, until there were enough kills; returns what was wrong."""
    draw, ends, faults, number = random.Random(given.seed), dict[str, bytes](), list[str](), 0
    while counts["kills"] < given.kills:
        kind = (given.only or list(KINDS))[number % len(given.only or KINDS)]
        number += 1
        ends[kind] = ends.get(kind) or expected(kind, place)
        training, env, options = KINDS[kind]
        try:
            run = training(place / f"run-{number}-{kind}", env, quiet=True, **options)
            if disturb(run, machines, draw, counts, given.kills) != ends[kind]:
                faults.append(f"run {number}, {kind}: other bits than those of one process")
            counts["runs"] += 1
        except (Exception, AssertionError) as error:
            faults.append(f"run {number}, {kind}: {type(error).__name__}: {str(error)[-600:]}")
        print(f"{counts['kills']} kills, {counts['runs']} runs, {len(faults)} faults ({kind}) {faults[-1:]}", flush=True)
        if faults and counts["kills"] == 0:
            break
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=sorted(KINDS), metavar="KIND")
    given = parser.parse_args()
    counts, machines = Counter[str](), Machines()
    ray.init(address=machines.address, namespace="esker", log_to_driver=False, logging_level="CRITICAL")
    for _ in range(2):
        add_node(machines)
    machines.settle()
    with tempfile.TemporaryDirectory(prefix="esker-cluster-kills-") as place:
        os.environ["XDG_STATE_HOME"] = place
        faults = campaign(machines, Path(place), given, counts)
        ray.shutdown()
        machines.cluster.shutdown()
        try:
            wait_for(lambda: set(marked(MARKED)) <= {os.getpid()}, 60, 0.5)
        except AssertionError:
            faults.append(f"processes are left behind: {marked(MARKED)}")
    print("\n".join(f"{count:5}  {name}" for name, count in sorted(counts.items())))
    print("\n".join([*faults, f"faults: {len(faults)}"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
