"""`esker.Worker`: a user-written process that evaluates members of a run in any way, and reports scores.

It may join and leave at any time. When the coordinator is gone it waits for it to come back, and continues.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from esker.engines.remote.server import POLL, member_rows
from esker.engines.remote.token import worker_token
from esker.errors import RunError, UsageError
from esker.noise.counter import CounterNoise
from esker.noise.directions import Vector
from esker.noise.population import Population

ALIVE_EVERY = 2.0  # seconds between heartbeats while a slice is evaluated
AGAIN_AFTER = 0.5  # seconds until a coordinator that does not respond is asked again


@dataclass(frozen=True)
class Work:
    """A slice of a generation. `members` has a number for each row, None for the unperturbed centre.

    `seeds` belong to the evaluations: a simulator that begins from them gives the same score on every worker.
    """

    generation: int
    items: tuple[int, ...]
    members: tuple[int | None, ...]
    seeds: tuple[int, ...]
    center: Vector
    rows: Vector  # (n, d) float32: what to evaluate
    digest: str

    def __len__(self) -> int:
        return len(self.items)


class Worker:
    """Fetches slices of a run and reports their scores: `for work in worker: worker.report(work, scores)`.

    `worker.run(score)` does the same with a function of a row. `token` is the coordinator's (default: $ESKER_TOKEN, or the
    file in the user's configuration folder). A wrong address or token raises UsageError, as does a run of another name; a
    coordinator that stays away for `patience` seconds raises RunError.
    """

    def __init__(
        self, address: str, run: str, token: str | None = None, *, name: str | None = None, patience: float = 300.0
    ) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise UsageError(f"address is {address!r}; expected HOST:PORT, as the coordinator prints it")
        self.address = address
        self.run_name = run
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self.patience = patience
        self._token = worker_token(token, make=False)
        self._host, self._port = host, int(port)
        self._center: tuple[str, Vector] = ("", np.zeros(0, dtype=np.float32))
        self._busy = threading.Event()
        self._closed = threading.Event()
        threading.Thread(target=self._stay_alive, daemon=True, name="esker-worker").start()

    def __iter__(self) -> Iterator[Work]:
        """Slices as there are any, until the run is over or the worker is closed."""
        while not self._closed.is_set():
            found = self._ask("/work")
            if found.get("end"):
                return
            if not found.get("wait"):
                with contextlib.suppress(Gone):
                    work = self._unpack(found)
                    self._busy.set()
                    yield work
            self._busy.clear()

    def report(self, work: Work, scores: Sequence[float] | np.ndarray) -> bool:
        """Send a slice's scores; returns whether they counted, or others were first. A wrong count raises UsageError."""
        numbers = [float(score) for score in scores]
        if len(numbers) != len(work):
            raise UsageError(f"{len(numbers)} scores for a slice of {len(work)}; expected one for each row")
        body = {"generation": work.generation, "center": work.digest, "items": list(work.items), "scores": numbers}
        self._busy.clear()
        return bool(self._ask("/report", **body)["counted"])

    def run(self, score: Callable[[Vector], float]) -> int:
        """Evaluate rows one by one until the run is over; returns how many."""
        count = 0
        for work in self:
            self.report(work, [score(row) for row in work.rows])
            count += len(work)
        return count

    def close(self) -> None:
        """Leave: what this worker holds goes to others at once."""
        self._closed.set()
        with contextlib.suppress(OSError, http.client.HTTPException, UsageError):
            self._request("/leave", {}, timeout=2)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _unpack(self, found: dict[str, Any]) -> Work:
        if found["center"] != self._center[0]:
            raw = self._ask("/center", center=found["center"])["raw"]
            self._center = (found["center"], np.frombuffer(raw, dtype="<f4").astype(np.float32))
        center, members = self._center[1], found["members"]
        if found["scale"] is not None:
            noise = CounterNoise(found["noise_seed"], len(center))
            arguments = (found["scale"], found["generation"], found["antithetic"], noise, range(0))
            rows = member_rows(Population(center, *arguments), members)
        else:
            raw = self._ask("/rows", center=found["center"], items=found["items"])["raw"]
            rows = np.frombuffer(raw, dtype="<f4").astype(np.float32).reshape(len(members), -1)
        items, seeds = tuple(found["items"]), tuple(found["seeds"])
        return Work(found["generation"], items, tuple(members), seeds, center, rows, found["center"])

    def _ask(self, path: str, **body: Any) -> dict[str, Any]:
        """One request; waits for a coordinator that is away."""
        until = time.monotonic() + self.patience
        while True:
            try:
                return self._request(path, body, timeout=POLL + 20)
            except (OSError, http.client.HTTPException) as error:
                if time.monotonic() > until:
                    raise RunError(f"no coordinator at {self.address} for {self.patience:g} s ({error})") from error
                if self._closed.wait(AGAIN_AFTER):
                    return {"end": True, "counted": False}

    def _request(self, path: str, body: dict[str, Any], timeout: float) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            data = json.dumps({"run": self.run_name, "worker": self.name, **body})
            connection.request("POST", path, data, {"Authorization": f"Bearer {self._token}"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status == 200:
            raw = response.headers.get_content_type() == "application/octet-stream"
            return {"raw": content} if raw else json.loads(content)
        reason = _reason(content)
        if response.status == 410:
            raise Gone(reason)
        raise UsageError(f"the coordinator at {self.address} refused: {reason}")

    def _stay_alive(self) -> None:
        """Tell the coordinator that a long evaluation is not a dead worker."""
        while not self._closed.wait(ALIVE_EVERY):
            if self._busy.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException, UsageError):
                    self._request("/alive", {}, timeout=ALIVE_EVERY)


class Gone(Exception):
    """The generation of a slice is over."""


def _reason(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return "it is not an esker coordinator"


__all__ = ["Work", "Worker"]
