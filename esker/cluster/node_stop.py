"""Ending this machine's node of one cluster, where `ray stop` would end the nodes of all."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass

from esker.errors import UsageError

ADDRESS = re.compile(r"--gcs-address=(\S+?:\d+)")
PATIENCE = 10.0  # seconds that processes have to end on their own


@dataclass(frozen=True)
class RayProcess:
    """A process of a Ray node on this machine, and the cluster that it belongs to."""

    pid: int
    address: str


def stop_node(address: str | None) -> tuple[str, int]:
    """End the processes of one cluster's node here; returns its address and how many they were.

    Without an address there must be one cluster only. None, or several, raise UsageError.
    """
    found = ray_processes(_listing())
    known = sorted({process.address for process in found})
    # A head has several names; where none is the one given, its port identifies it.
    chosen = (
        known if address is None else [address] if address in known else [o for o in known if _port(o) == _port(address)]
    )
    if not chosen:
        where = f" of the cluster at {address}" if address else ""
        others = f"; running here: {', '.join(known)}" if known else ""
        raise UsageError(f"no node{where} is running on this machine{others}")
    if len(chosen) > 1:
        raise UsageError(f"nodes of several clusters are running here; name one: {', '.join(chosen)}")
    pids = {process.pid for process in found if process.address == chosen[0]}
    end_processes(pids)
    return chosen[0], len(pids)


def pids_at(port: str) -> set[int]:
    """The processes of Ray nodes here whose cluster has this port, also of one that never came up."""
    here = re.compile(rf"(gcs_server_port=|gcs-address=\S+?:|gcs_address=\S+?:){port}\b")
    return {int(line.split()[0]) for line in _listing() if "/ray/" in line and here.search(line)}


def ray_processes(listing: Iterable[str]) -> list[RayProcess]:
    """The Ray processes in lines of `pid command`. The head's own server is known by the port of its cluster."""
    lines = [line.strip().partition(" ") for line in listing if line.strip()]
    found = [RayProcess(int(pid), match[1]) for pid, _, text in lines if (match := ADDRESS.search(text))]
    for pid, _, text in lines:
        port = re.search(r"gcs_server.*--gcs_server_port=(\d+)", text)
        if port:
            found += [
                RayProcess(int(pid), address) for address in {one.address for one in found} if _port(address) == port[1]
            ]
    return found


def _listing() -> list[str]:
    """The user's own processes, one in a line: pid and command."""
    command = ["ps", "-ww", "-u", str(os.getuid()), "-o", "pid=,args="]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def _port(address: str) -> str:
    return address.rpartition(":")[2]


def end_processes(pids: set[int]) -> None:
    """End processes: SIGTERM, then SIGKILL."""
    _signal(pids, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while any(map(_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    _signal({pid for pid in pids if _alive(pid)}, signal.SIGKILL)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _alive(pid: int) -> bool:
    """Whether a process is still running; one that its parent has not collected yet is not."""
    shown = subprocess.run(["ps", "-p", str(pid), "-o", "stat="], capture_output=True, text=True, check=False).stdout.strip()
    return bool(shown) and not shown.startswith("Z")
