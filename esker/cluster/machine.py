"""Starting Ray on this machine, as a head or as a node: quiet, authenticated, with a small object store."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from esker.cluster.connect import HEALTH, OBJECT_STORE, QUIET, import_ray, reach
from esker.cluster.token import authenticate, check_token, ensure_token, token_file
from esker.errors import RunError, UsageError


def start_head(port: int, share: list[str], persist: str | None = None, block: bool = False) -> Path:
    """Start a head; answers its token's file. A port in use raises UsageError."""
    if not 1 <= port <= 65535:
        raise UsageError(f"port is {port}; expected 1 to 65535")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise UsageError(f"port {port} is in use; choose another --port, or join the cluster that has it") from error
    if persist is not None:
        Path(persist).mkdir(parents=True, exist_ok=True)
        os.environ |= {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": str(Path(persist).resolve())}
    token = ensure_token()
    authenticate(token)
    _ray_start(["--head", f"--port={port}", "--include-dashboard=false", *share], block)
    return token


def start_node(head: str, share: list[str], block: bool = False) -> None:
    """Join the cluster of a head. One that does not answer, or a missing token, raises UsageError."""
    reach(head)
    token = token_file()
    check_token(token)
    authenticate(token)
    _ray_start([f"--address={head}", *share], block)


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
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        reasons = [line for line in lines if "rror" in line or "ismatch" in line] or lines or ["no reason given"]
        raise RunError(f"`ray start` failed: {reasons[-1]}")
