"""Starting Ray on this machine, as a head or as a node: quiet, authenticated, with a small object store."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

from esker.cluster.connect import HEALTH, OBJECT_STORE, QUIET, reach
from esker.cluster.node_stop import end_processes, pids_at
from esker.cluster.token import authenticate, check_token, ensure_token, token_file
from esker.engines.demand import import_ray
from esker.errors import RunError, UsageError

WORKER_PORTS = (10002, 19999)  # what `ray start` gives its workers
RAYS_OWN = {10001: "its client", 8265: "its dashboard", 52365: "its dashboard's agent"}


def start_head(port: int, share: list[str], persist: str | None = None, block: bool = False) -> Path:
    """Start a head; returns its token's file. A port in use raises UsageError."""
    if not 1 <= port <= 65535:
        raise UsageError(f"port is {port}; expected 1 to 65535")
    if port in RAYS_OWN:
        raise UsageError(f"port {port} is Ray's own for {RAYS_OWN[port]}; use --port {_usable_port()}")
    if not _is_free(port):
        raise UsageError(
            f"port {port} is in use; use --port {_usable_port()}, or join the cluster that has it: "
            f"esker cluster join HOST:{port}"
        )
    if persist is not None:
        Path(persist).mkdir(parents=True, exist_ok=True)
        os.environ |= {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(Path(persist).resolve())}
    token = ensure_token()
    authenticate(token)
    _ray_start(["--head", f"--port={port}", "--include-dashboard=false", *worker_ports(port), *share], block)
    return token


def start_node(head: str, share: list[str], block: bool = False) -> None:
    """Join the cluster of a head. A head that does not respond, or a missing token, raises UsageError."""
    reach(head)
    token = token_file()
    check_token(token)
    authenticate(token)
    _ray_start([f"--address={head}", *share], block)


def worker_ports(port: int) -> list[str]:
    """The flags that keep Ray's workers off the head's own port: the larger part of their range next to it."""
    first, last = WORKER_PORTS
    if not first <= port <= last:
        return []
    low, high = (first, port - 1) if port - first > last - port else (port + 1, last)
    return [f"--min-worker-port={low}", f"--max-worker-port={high}"]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _usable_port() -> int:
    return next(port for port in range(6379, 8000) if _is_free(port))


def own_address() -> str:
    """This machine's address as other machines see it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # no packet is sent: this only asks which interface would be used
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def _ray_start(flags: list[str], block: bool) -> None:
    """Run `ray start`, silent unless it fails."""
    import_ray()
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats"]
    command += [f"--object-store-memory={OBJECT_STORE}", *flags]
    environment = HEALTH | QUIET | os.environ
    if block:
        sys.stdout.flush()
        os.execve(sys.executable, [*command, "--block"], environment)
    port = next(flag for flag in flags if re.match("--(port|address)=", flag)).replace("=", ":").rpartition(":")[2]
    before = pids_at(port)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        end_processes(pids_at(port) - before)  # what it had started already
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reasons = [line for line in lines if "rror" in line or "ismatch" in line] or lines or ["no reason given"]
        raise RunError(f"`ray start` failed: {reasons[-1]}")
