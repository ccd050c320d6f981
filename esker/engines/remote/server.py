"""The coordinator's side: a small HTTP server that hands out slices of a generation and takes scores.

Requests carry a token. Bodies are JSON and raw little-endian float32: nothing is ever unpickled. It listens on the
loopback interface unless told otherwise; the token travels unencrypted, so other machines come through a private network
or an SSH tunnel.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from esker.engines.plan import Plan
from esker.engines.remote.assignments import Assignments
from esker.engines.remote.requests import HttpServer, RequestRefused
from esker.engines.remote.token import worker_token
from esker.errors import RunError, UsageError
from esker.noise.counter import CounterNoise
from esker.noise.population import Population
from esker.tasks.task import LARGEST, Result, is_fitness

if TYPE_CHECKING:
    from esker.strategies.strategy import Strategy

POLL = 10.0  # seconds that a request for work waits for some
FAREWELL = 1.0  # seconds that a closing server tells workers that the run is over

Address = Callable[
    [int], tuple[int | None, int]
]  # of an item: its member (None: the centre), and the seed of its evaluation
Action = Callable[[dict[str, Any]], "dict[str, Any] | bytes"]


class WorkServer:
    """Lets `esker.Worker` processes evaluate the members of a run: `es.tell(server.evaluate(es))`.

    `run` names it, so that a worker does not join another by mistake. Without `token` it is $ESKER_TOKEN, or a file in the
    user's configuration folder, made where there is none. A port in use raises UsageError.
    """

    def __init__(
        self, run: str, host: str = "127.0.0.1", port: int = 0, token: str | None = None, silent_after: float = 10.0
    ) -> None:
        if silent_after <= 0:
            raise UsageError(f"silent_after is {silent_after}; expected a number of seconds above 0")
        self.run = run
        self.token = worker_token(token, make=True)
        self._changed = threading.Condition()
        self._assignments = Assignments(silent_after)
        self._population: Population | None = None
        self._digest = ""
        self._address: Address = lambda item: (item, 0)
        self._failure: Exception | None = None
        self._ended = False
        self._http = HttpServer(host, port, self.token, self._respond)

    @property
    def address(self) -> str:
        """Where workers connect: HOST:PORT."""
        return self._http.address

    @property
    def workers(self) -> list[str]:
        """The workers that are taking part now."""
        with self._changed:
            return list(self._assignments.workers)

    def evaluate(self, strategy: Strategy) -> np.ndarray:
        """The fitness of this generation's members, by whichever workers there are; waits until all are in."""
        plan = Plan(strategy.population, refuse=_refuse)
        self.evaluate_plan(strategy.ask(), plan, lambda item: (item, 0))
        return np.array([result.total for result in plan.of_members()])

    def evaluate_plan(self, population: Population, plan: Plan, address: Address) -> None:
        """Hand out the items of a plan until it is complete. A score that the plan refuses raises what it raises."""
        with self._changed:
            self._population, self._address, self._failure = population, address, None
            self._digest = hashlib.sha256(population.center.tobytes()).hexdigest()
            self._assignments.begin(plan)
            self._changed.notify_all()
            while plan.complete is None and self._failure is None:
                self._changed.wait(min(1.0, self._assignments.silent_after / 4))
                if self._assignments.expire(time.monotonic()):
                    self._changed.notify_all()
            self._population = None
            if self._failure is not None:
                raise self._failure

    def close(self) -> None:
        """Tell the workers that the run is over, and stop listening."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            until = time.monotonic() + FAREWELL
            while self._assignments.workers and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
        self._http.close()

    def __enter__(self) -> WorkServer:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _respond(self, path: str, body: dict[str, Any]) -> dict[str, Any] | bytes:
        """One request, in its own thread. A bad request raises RequestRefused."""
        if body.get("run") != self.run:
            raise RequestRefused(409, f"this is run {self.run!r}, not {body.get('run')!r}")
        actions: dict[str, Action] = {
            "/work": self._work,
            "/report": self._report,
            "/center": self._center,
            "/rows": self._rows,
            "/alive": self._alive,
            "/leave": self._leave,
        }
        if path not in actions:
            raise RequestRefused(404, f"unknown path {path!r}; expected one of {', '.join(actions)}")
        with self._changed:
            return actions[path](body)

    def _work(self, body: dict[str, Any]) -> dict[str, Any]:
        worker, until = _text(body, "worker"), time.monotonic() + POLL
        while not self._ended:
            items = self._assignments.take(worker, time.monotonic()) if self._population is not None else []
            if items:
                return self._slice(items)
            self._assignments.hear(worker, time.monotonic())
            if (left := until - time.monotonic()) <= 0:
                return {"wait": True}
            self._changed.wait(min(left, self._assignments.silent_after / 2))
        self._assignments.leave(worker)
        self._changed.notify_all()
        return {"end": True}

    def _slice(self, items: list[int]) -> dict[str, Any]:
        population = self._population
        assert population is not None
        noise = population.noise
        plain = isinstance(noise, CounterNoise) and isinstance(population.scale, float) and type(population) is Population
        addresses = [self._address(item) for item in items]
        return {
            "generation": population.generation,
            "items": items,
            "members": [member for member, _ in addresses],
            "seeds": [seed for _, seed in addresses],
            "center": self._digest,
            "dimension": len(population.center),
            "antithetic": population.antithetic,
            "scale": population.scale if plain else None,
            "noise_seed": noise.seed if plain and isinstance(noise, CounterNoise) else None,
        }

    def _report(self, body: dict[str, Any]) -> dict[str, Any]:
        """Scores count if they belong to the very centre that is being evaluated, whichever life of the run sent it out."""
        worker, items, scores = _text(body, "worker"), body.get("items"), body.get("scores")
        if not isinstance(items, list) or not isinstance(scores, list) or len(items) != len(scores):
            raise RequestRefused(400, "expected items and as many scores")
        plan, population = self._assignments.plan, self._population
        fits = population is not None and body.get("generation") == population.generation
        if plan is None or not fits or body.get("center") != self._digest:
            self._assignments.hear(worker, time.monotonic())
            return {"counted": False}
        known = plan.center + plan.members * plan.episodes
        if not all(isinstance(item, int) and 0 <= item < known for item in items):
            raise RequestRefused(400, f"items must be whole numbers from 0 to {known - 1}")
        self._assignments.done(worker, items, time.monotonic())
        try:
            plan.add([_result(item, score) for item, score in zip(items, scores, strict=True)])
        except RunError as error:
            self._failure = error
        self._changed.notify_all()
        return {"counted": True}

    def _center(self, body: dict[str, Any]) -> bytes:
        population = self._population
        if population is None or body.get("center") != self._digest:
            raise RequestRefused(410, "this centre is no longer evaluated")
        return np.ascontiguousarray(population.center, dtype="<f4").tobytes()

    def _rows(self, body: dict[str, Any]) -> bytes:
        """The parameters of some items, for workers that cannot compute them."""
        population, items = self._population, body.get("items")
        if population is None or body.get("center") != self._digest:
            raise RequestRefused(410, "this centre is no longer evaluated")
        if not isinstance(items, list) or not all(isinstance(item, int) and item >= 0 for item in items):
            raise RequestRefused(400, "expected items")
        members = [self._address(item)[0] for item in items]
        return np.ascontiguousarray(member_rows(population, members), dtype="<f4").tobytes()

    def _alive(self, body: dict[str, Any]) -> dict[str, Any]:
        self._assignments.hear(_text(body, "worker"), time.monotonic())
        return {}

    def _leave(self, body: dict[str, Any]) -> dict[str, Any]:
        self._assignments.leave(_text(body, "worker"))
        self._changed.notify_all()
        return {}


def member_rows(population: Population, members: list[int | None]) -> np.ndarray:
    """The parameters of some members, in their order; None is the centre."""
    rows = np.empty((len(members), len(population.center)), dtype=np.float32)
    for row, member in zip(rows, members, strict=True):
        if member is None:
            row[:] = population.center
        else:
            population.write(member, row)
    return rows


def _result(item: int, score: Any) -> Result:
    number = float(score) if isinstance(score, int | float) and not isinstance(score, bool) else float("nan")
    error = None if is_fitness(number) else f"a worker reported {score!r}; expected a finite number below {LARGEST:g}"
    return Result(item, number, number, 1, None, error)


def _refuse(result: Result) -> None:
    raise RunError(f"member {result.item}: {result.error}")


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise RequestRefused(400, f"expected {name}, a text of at most 200 characters")
    return value
