"""The run that is simulated: a few parameters climbing a bare function, as an algorithm that a run folder can name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sim_clock import Event, sleep
from sim_world import the

from esker.algorithms.algorithm import Algorithm, Site, Workers
from esker.algorithms.center import Center
from esker.algorithms.facts import Facts
from esker.config.option import option
from esker.config.options import StopOptions
from esker.engines.demand import Demand
from esker.engines.node import setup_for
from esker.engines.plan import Plan
from esker.engines.ray import RayEngine
from esker.engines.roster import Roster
from esker.noise.counter import CounterNoise
from esker.strategies.openai_es import OpenAIES
from esker.tasks.task import Job, Result

DIMENSION = 3
NOISE = CounterNoise(5, DIMENSION)


@dataclass(frozen=True, kw_only=True)
class TinyConfig(StopOptions):
    """As few options as a run can have."""

    algo: str = option("sim_task:TINY", "algorithm")
    env: str = option("tiny", "what is climbed")
    checkpoint_every: int = option(2, "generations between snapshots")
    keep: int | None = option(2, "snapshots to keep")
    log: tuple[str, ...] = option((), "loggers")
    device: str = option("cpu", "device")
    warm: bool = option(False, "the start cannot be recomputed")

    def check(self) -> None:
        """Anything goes."""


class TinyState(Center):
    """Evolution by a function; like a warm start's, its first centre may not follow from the configuration."""

    @property
    def starts_as_configured(self) -> bool:
        return not self.config.warm

    def job(self) -> Job:
        return Job(self.strategy.ask())

    def plan(self) -> Plan:
        return Plan(self.strategy.population, center=1)

    def facts(self, plan: Plan, seconds: float) -> Facts:
        fitness = np.array([result.fitness for result in plan.of_members()])
        return Facts(
            generation=np.array([self.generation]),
            fitness=fitness,
            returns=fitness,
            lengths=np.ones((len(fitness), 1), dtype=np.int32),
            center_returns=np.array([result.total for result in plan.of_center()]),
            center_lengths=np.ones(1, dtype=np.int32),
            statistics_count=np.array([0]),
            statistics_total=np.zeros(0),
            statistics_squares=np.zeros(0),
            discarded_steps=np.array([plan.dropped_steps]),
            seconds=np.array([seconds]),
        )


@dataclass(frozen=True)
class TinyTask:
    """The function: its value is as good as the place is near (1, 1, 1), and a little rough."""

    slots: int = 1

    def result(self, job: Job, item: int) -> Result:
        row = np.array(job.center)
        if item:
            job.population.bound(NOISE).write(item - 1, row)
        value = float(-np.square(row - 1, dtype=np.float64).sum() + 0.01 * np.sin(1e3 * row.astype(np.float64)).sum())
        return Result(item, value, value, 1)

    def describe(self, generation: int, item: int) -> str:
        return f"generation {generation}, item {item}"


class Bench:
    """A node's engine without worker processes: one item after the other, each for a while."""

    def __init__(self, task: TinyTask, workers: int, table: object, step_timeout: float | None) -> None:
        self._task, self._bell = task, Event()

    def evaluate(self, job: Job, plan: Any) -> None:
        while plan.complete is None:
            items = plan.take(1)
            if not items:
                self._bell.wait()
                self._bell.clear()
                continue
            sleep(the().dice.uniform(0.1, 1.0))
            plan.add([self._task.result(job, items[0])])

    def wake(self) -> None:
        self._bell.set()

    def close(self) -> None:
        """Nothing is open."""


def start(config: Any, environment: Any, about: Any, new: bool) -> TinyState:
    first = np.full(DIMENSION, 0.5 if config.warm and new else 0.0, dtype=np.float32)
    strategy = OpenAIES(first, population=4, sigma=0.1, lr=0.05, seed=5, noise=NOISE)
    return TinyState(config, strategy)


def open_engine(state: Any, site: Site) -> RayEngine:
    return RayEngine(Roster(setup_for(TinyTask()), Demand(), site.run, site.epoch), site.note)


TINY = Algorithm("tiny", TinyConfig, start, None, open_engine, lambda config: Workers(None), lambda config: {})  # type: ignore[arg-type]
