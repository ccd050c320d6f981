"""One Ray cluster of several nodes on this machine for all cluster tests; each test leaves it as it found it.

`pytest tests/cluster -m faults` runs every fault; without `-m faults` the long ones are left out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
os.environ |= {
    "XDG_CONFIG_HOME": tempfile.mkdtemp(prefix="esker-tests-"),  # tokens of tests are not the user's
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # by default 15: on a busy machine its workers would hardly run
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "PYTHONPATH": os.pathsep.join([*map(str, (HERE.parent.parent, HERE.parent, HERE)), os.environ.get("PYTHONPATH", "")]),
}
sys.path.insert(0, str(HERE))
STORE = 80_000_000


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "faults: long fault injections, run with -m faults")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: HERE in item.path.parents)  # last: this process stays connected to the cluster until it ends
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

    def settle(self) -> None:
        """Wait until Ray knows of these nodes and no others: those that a former test killed may seem alive for a while."""
        import ray
        from cluster_helpers import wait_for

        nodes = {node.node_id for node in (self.cluster.head_node, *self.cluster.worker_nodes)}
        wait_for(lambda: {node["NodeID"] for node in ray.nodes() if node["Alive"]} == nodes, 60)

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
    yield from _with_nodes(machines, 2)


@pytest.fixture
def four_nodes(machines: Machines) -> Iterator[Machines]:
    """The cluster with four nodes of one worker each."""
    yield from _with_nodes(machines, 4)


def _with_nodes(machines: Machines, count: int) -> Iterator[Machines]:
    before = set(machines.cluster.worker_nodes)
    for _ in range(count):
        machines.add()
    machines.settle()
    yield machines
    for node in set(machines.cluster.worker_nodes) - before:
        machines.remove(node)
