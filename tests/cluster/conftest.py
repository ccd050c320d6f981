"""One Ray cluster of several nodes on this machine for all cluster tests; each test leaves it as it found it.

`pytest tests/cluster -m faults` runs every fault; without `-m faults` the long ones are left out.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), str(HERE), os.environ.get("PYTHONPATH", "")]),
}
sys.path.insert(0, str(HERE))
STORE = 80_000_000
SMALL: dict[str, Any] = {
    "preset": None,
    "population": 20,
    "hidden": (8,),
    "center_episodes": 2,
    "slots": 4,
    "noise": "counter",
    "checkpoint_every": 3,
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "faults: long fault injections, run with -m faults")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "faults" in config.getoption("markexpr"):
        return
    left_out = [item for item in items if item.get_closest_marker("faults")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


class Machines:
    """Nodes of one cluster that tests add and kill."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE},
        )
        self.address = self.cluster.address

    def add(self, cpus: int = 1, **options: Any) -> Any:
        return self.cluster.add_node(num_cpus=cpus, object_store_memory=STORE, include_dashboard=False, **options)

    def remove(self, node: Any, graceful: bool = True) -> None:
        self.cluster.remove_node(node, allow_graceful=graceful)

    def raylet(self, node: Any) -> int:
        """The process id of a node's raylet."""
        return int(node.all_processes["raylet"][0].process.pid)


@pytest.fixture(scope="session")
def machines() -> Iterator[Machines]:
    ray = pytest.importorskip("ray")
    found = Machines()
    ray.init(address=found.address, namespace="esker", log_to_driver=False, logging_level="CRITICAL")
    yield found
    ray.shutdown()
    found.cluster.shutdown()


@pytest.fixture
def two_nodes(machines: Machines) -> Iterator[Machines]:
    """The cluster with two nodes of one worker each, whatever happens to them."""
    before = set(machines.cluster.worker_nodes)
    for _ in range(2):
        machines.add()
    yield machines
    for node in set(machines.cluster.worker_nodes) - before:
        machines.remove(node)


class Training:
    """A run on the cluster, trained in a thread, with its coordinator at hand."""

    def __init__(self, path: Path, env: str, **options: Any) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.error: BaseException | None = None
        self._options = SMALL | options | {"engine": "ray", "run_dir": str(path)}
        self._thread = threading.Thread(target=self._train, args=(env,), daemon=True)
        self._thread.start()

    def _train(self, env: str) -> None:
        import esker

        try:
            esker.train(env, observer=self, **self._options)
        except BaseException as error:
            self.error = error

    def begin(self, config: Any, folder: Any, rows: list[Any]) -> None: ...
    def end(self, reason: str) -> None: ...

    def generation(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def note(self, text: str) -> None:
        self.notes.append(text)

    @property
    def coordinator(self) -> Any:
        import ray

        return ray.get_actor(self.path.name, namespace="esker")

    def pid(self) -> int:
        import ray

        return int(ray.get(self.coordinator.pid.remote(), timeout=60))

    def reach(self, generation: int) -> None:
        """Wait until the viewer has seen so many generations."""
        wait_for(lambda: len(self.rows) >= generation or not self._thread.is_alive())
        assert self.error is None, self.error

    def finish(self, within: float = 120) -> bytes:
        """Wait for the end; answers the state's bits."""
        self._thread.join(within)
        assert not self._thread.is_alive(), (len(self.rows), self.notes)
        if self.error is not None:
            raise self.error
        assert [row["generation"] for row in self.rows] == list(range(len(self.rows)))
        return bits(self.path)


def bits(path: Path) -> bytes:
    """The newest state of a run, as bytes."""
    return (path / "checkpoints" / (path / "latest").read_text().strip() / "state.safetensors").read_bytes()


def undisturbed(path: Path, env: str, **options: Any) -> bytes:
    """The state that the same request gives on the local engine."""
    import esker

    esker.train(env, run_dir=str(path), workers=0, **(SMALL | options))
    return bits(path)


def wait_for(condition: Callable[[], bool], within: float = 60, every: float = 0.02) -> None:
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(every)


def during(action: Callable[[], None], after: float) -> threading.Thread:
    """Do something while the test goes on."""

    def act() -> None:
        time.sleep(after)
        action()

    thread = threading.Thread(target=act)
    thread.start()
    return thread
