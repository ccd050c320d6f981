"""What a run needs of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from esker.config.options import ClusterOptions
from esker.errors import UsageError

if TYPE_CHECKING:
    from esker.config.hybrids import HybridConfig


@dataclass(frozen=True)
class Demand:
    """What a run needs of a cluster: workers (None: every CPU) and resources of each node; `node`: only that one."""

    workers: int | None = None
    cpus_per_worker: float = 1.0
    gpus_per_node: float = 0.0
    resources: dict[str, float] = field(default_factory=dict)
    node: str | None = None

    def workers_on(self, offered: dict[str, float]) -> int:
        """How many workers a node with these resources can take; 0 where it lacks something."""
        wanted = self.resources | ({"GPU": self.gpus_per_node} if self.gpus_per_node else {})
        if any(offered.get(name, 0) < amount for name, amount in wanted.items()):
            return 0
        if not self.cpus_per_worker:  # a process that Ray does not count
            return 1
        return int(offered.get("CPU", 0) / self.cpus_per_worker + 1e-9)


def demand_of(config: ClusterOptions, workers: int | None) -> Demand:
    """What a configuration needs of a cluster."""
    return Demand(workers, config.cpus_per_worker, config.gpus_per_node, dict(config.resources))


def critic_demand(config: HybridConfig) -> Demand:
    """Where a critic trains in its own process: on a node with a GPU if it needs one, else next to the loop."""
    ray = import_ray()
    if config.device == "cpu":
        return Demand(1, 0.0, node=ray.get_runtime_context().get_node_id())
    return Demand(1, 0.0, gpus_per_node=min(1.0, gpu_left(ray.nodes(), config.gpus_per_node)))


def gpu_left(nodes: list[dict[str, Any]], taken: float) -> float:
    """The most of a GPU that a node has left when its actors have taken theirs."""
    return max((node["Resources"].get("GPU", 0.0) - taken for node in nodes if node["Alive"]), default=0.0)


def import_ray() -> Any:
    """Ray, or UsageError with how to install it."""
    try:
        import ray
    except ImportError as error:
        raise UsageError("the Ray engine needs Ray, which is not installed; pip install 'esker[ray]'") from error
    return ray
