"""Joining a Ray cluster, or starting a small local one, with clear errors."""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import Any

from esker.algorithms.algorithm import Workers
from esker.cluster.token import authenticate, ensure_token, token_file
from esker.config.hybrids import HybridConfig
from esker.config.options import ClusterOptions
from esker.engines.demand import Demand, demand_of, gpu_left, import_ray
from esker.engines.roster import NAMESPACE
from esker.errors import RunError, UsageError
from esker.system.cores import available_cores

_own_ray = False
OBJECT_STORE = 200_000_000  # bytes: a centre per generation is all that lives there
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
# A frozen node is given up after some four seconds instead of half a minute.
HEALTH = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}


def join_engine(config: Any, workers: Workers) -> list[str]:
    """Join or start the cluster of a Ray engine, before anything is written. Returns notices; raises UsageError."""
    if config.engine == "local":
        return _crowding(workers.count)
    notices = connect(config, workers.count)
    return notices + (check_learner(config, workers) if isinstance(config, HybridConfig) else [])


def _crowding(workers: int | None) -> list[str]:
    """A notice where this machine has fewer cores than worker processes."""
    cores = available_cores()
    if workers is None or workers <= cores:
        return []
    return [f"{workers} workers for {cores} cores: they share cores"]


def check_learner(config: HybridConfig, workers: Workers) -> list[str]:
    """Refuse a GPU that a learner would not find, in the loop or apart from it. Returns a notice about the actors."""
    apart = workers.critic
    if config.device == "cpu" or (is_own() and not apart):
        return []
    ray = import_ray()
    here = ray.get_runtime_context().get_node_id()
    with_gpu = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("GPU", 0) >= 1]
    if not with_gpu:
        raise UsageError(f"device is {config.device!r}, and no node of the cluster offers a GPU; use --device cpu")
    if not apart and here not in with_gpu:
        raise UsageError(
            f"device is {config.device!r}, and {config.algo} trains on the machine that starts it, which has no GPU; "
            "start it on one that has, or use --device cpu"
        )
    if apart and gpu_left(ray.nodes(), config.gpus_per_node) <= 0:
        raise UsageError(
            f"gpus_per_node is {config.gpus_per_node:g}: the actors would take every GPU and leave none for the critic; "
            "use --gpus-per-node 0.5"
        )
    if config.gpus_per_node or not workers.actors_train:
        return []
    return ["actors train on their nodes' CPUs; --gpus-per-node 0.5 lets them train on a GPU of each node"]


def connect(config: ClusterOptions, workers: int | None) -> list[str]:
    """Connect this process as configured; returns notices. What is not possible raises UsageError."""
    address = config.address or os.environ.get("RAY_ADDRESS")  # set by `ray job submit`
    if connected():
        _check_connection(config)
    elif address is not None:
        join(address, config.working_dir)
    else:
        _start_own(config, workers)
    return check_demand(demand_of(config, workers))


def _check_connection(config: ClusterOptions) -> None:
    """Refuse what a process that is connected already can no longer choose."""
    here = import_ray().get_runtime_context().gcs_address
    if config.address not in (None, "auto") and str(config.address).rpartition(":")[2] != here.rpartition(":")[2]:
        raise UsageError(f"address is {config.address!r}, and this process is connected to Ray at {here}; leave it out")
    if config.working_dir is not None and not is_own():
        raise UsageError("working_dir is given, and this process is connected to Ray already; give it to ray.init instead")


def connected() -> bool:
    """Whether this process is connected to a cluster already."""
    return "ray" in sys.modules and bool(import_ray().is_initialized())


def is_own() -> bool:
    """Whether the Ray that this process is connected to was started by it and ends with it."""
    return _own_ray


def join(address: str, working_dir: str | None = None) -> None:
    """Connect to a cluster at HOST:PORT, or the one on this machine (auto); `working_dir` is sent to its nodes."""
    if "://" in address:
        raise UsageError(
            f"address is {address!r}; Ray's client is not supported: give HOST:PORT on a machine of the "
            "cluster, or use `ray job submit`"
        )
    if address != "auto":
        reach(address)
    _prepare_environment(new_token=False)
    try:
        _init(address=address, runtime_env={"working_dir": working_dir} if working_dir else None)
    except Exception as error:
        raise UsageError(_why_refused(address, error)) from error


def check_demand(demand: Demand) -> list[str]:
    """Refuse what no node of the cluster can give, naming what it has. Returns a notice if there is less than requested."""
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    counts = [demand.workers_on(node["Resources"]) for node in nodes]
    if not any(counts):
        wanted = {"CPU": demand.cpus_per_worker, **({"GPU": demand.gpus_per_node} if demand.gpus_per_node else {})}
        wanted |= demand.resources
        raise UsageError(f"no node of the cluster offers {_amounts(wanted)}; there are: {'; '.join(map(_offer, nodes))}")
    if demand.workers is None or sum(counts) >= demand.workers:
        return []
    if is_own():
        return [f"{demand.workers} workers were requested and this machine has cores for {sum(counts)}: that many start"]
    return [
        f"{demand.workers} workers were requested and the cluster has room for {sum(counts)}: the others start as nodes join"
    ]


def _start_own(config: ClusterOptions, workers: int | None) -> None:
    global _own_ray
    _prepare_environment(new_token=True)
    # Never more than there are cores: hundreds of workers would not start in time.
    cores = available_cores()
    cpus = cores if workers is None else min(workers * config.cpus_per_worker, cores)
    try:
        share: dict[str, Any] = {"num_cpus": max(1, int(cpus + 0.999)), "resources": config.resources or None}
        share["runtime_env"] = {"working_dir": config.working_dir} if config.working_dir else None
        _init(address="local", include_dashboard=False, object_store_memory=OBJECT_STORE, **share)
    except Exception as error:
        raise RunError(f"Ray could not be started on this machine: {_last_line(error)}") from error
    _own_ray = True


def _init(**options: Any) -> None:
    ray = import_ray()
    ray.init(namespace=NAMESPACE, log_to_driver=False, logging_level=logging.CRITICAL, **options)


def _prepare_environment(new_token: bool) -> None:
    """Ray reads these when it is imported, so a process that has imported it already keeps its own settings."""
    for name, value in (QUIET | HEALTH).items():
        os.environ.setdefault(name, value)
    if "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ and (new_token or token_file().is_file()):
        authenticate(ensure_token())


def reach(address: str) -> None:
    """Whether something listens there: Ray would wait silently."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"address is {address!r}; expected HOST:PORT or auto")
    try:
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            if not os.environ.get("RAY_USE_TLS") and not _speaks_grpc(connection):
                raise UsageError(f"{address} is not a Ray cluster; give the HOST:PORT of `esker cluster head`")
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"no Ray cluster answers at {address} ({reason}); start one with: esker cluster head") from error


def _speaks_grpc(connection: socket.socket) -> bool:
    """Whether a server begins as gRPC's do: by a SETTINGS frame of HTTP/2. Ray would wait minutes for another one."""
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    try:
        head = connection.recv(9)
    except TimeoutError:
        return False
    return len(head) >= 4 and head[3] == 4


def _why_refused(address: str, error: Exception) -> str:
    text = str(error)
    if "uthentication" in text or "token" in text.lower():
        return f"the cluster at {address} refused the token in {token_file()}; copy the head's token file there"
    if "ersion mismatch" in text:
        return f"the cluster at {address} has other versions: {' '.join(text.split())}"
    if isinstance(error, ConnectionError) and address == "auto":
        return "no Ray cluster runs on this machine; start one with `esker cluster head`, or leave --address out"
    if "Failed to connect" in text and os.environ.get("RAY_AUTH_MODE") == "token":  # something listens: `reach` found it
        return f"the cluster at {address} refused the connection; is the token in {token_file()} a copy of the head's?"
    return f"the Ray cluster at {address} could not be joined: {_last_line(error)}"


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def _amounts(resources: dict[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in resources.items())


def _offer(node: dict[str, Any]) -> str:
    hidden = ("memory", "object_store_memory")
    shown = {n: a for n, a in node["Resources"].items() if n not in hidden and not n.startswith("node:")}
    return f"{node.get('NodeName') or node['NodeID'][:6]} with {_amounts(shown) or 'nothing'}"
