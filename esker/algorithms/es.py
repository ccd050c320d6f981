"""Synchronous evolution strategies: ask for a generation, evaluate it in episodes, commit it as a fact, tell.

Any strategy with `ask` and `tell` fits: OpenAI-ES by default, others by name or by path.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from esker.algorithms.algorithm import About, Algorithm, Engine, Site, Workers
from esker.algorithms.center import Center, Evaluates, copied, flatten, unflatten
from esker.algorithms.device import choose_device, open_device_engine
from esker.algorithms.episodes_task import build_task, environment_options
from esker.algorithms.facts import Facts
from esker.algorithms.loop import JUDGED, Record, conclude
from esker.algorithms.observer import Row
from esker.algorithms.progress import CERTAIN, newest
from esker.algorithms.snapshot import Snapshot
from esker.algorithms.starts import Starts
from esker.config.options import ESConfig, SynchronousConfig
from esker.engines.demand import demand_of
from esker.engines.open import local_engine, ray_engine
from esker.engines.plan import Plan
from esker.errors import RunError
from esker.noise.address import Purpose, generator
from esker.noise.choice import open_table
from esker.noise.table import NoiseTable
from esker.policies import spaces
from esker.policies.heads import refuse_whole_numbers
from esker.policies.normalizer import Statistics
from esker.strategies.registry import build_strategy, find_strategy
from esker.strategies.restarts import Restarts
from esker.tasks.episodes import Episodes
from esker.tasks.task import Job, Result
from esker.worlds.environments import Environment, probed
from esker.worlds.reference import collect_reference

if TYPE_CHECKING:
    from esker.strategies.strategy import Strategy


class EvolutionStrategy(Center):
    """The state of an ES run: strategy, observation statistics and counters, moved by facts."""

    config: SynchronousConfig

    def __init__(self, config: SynchronousConfig, task: Episodes, strategy: Strategy, table: NoiseTable | None) -> None:
        super().__init__(config, strategy)
        episodes = strategy.population * config.episodes_per_member
        self.task = replace(
            task,
            antithetic=getattr(strategy.ask(), "antithetic", False),
            statistics_share=min(1.0, config.statistics_episodes / episodes),
        )
        self.table = table
        self.statistics = Statistics.empty(task.statistics_size)
        self.progress.episode_cap = config.cap_growth.initial if config.adaptive_cap == "threshold" else None
        self.starts = Starts(config.starts, config.start_steps)
        self._first = self._place()

    @property
    def starts_as_configured(self) -> bool:
        """Whether the start follows from the configuration; a warm start and observed reference frames do not."""
        return self.config.init_from is None and not getattr(self.task.network, "normalized", False)

    def job(self) -> Job:
        """What workers must know of this generation; the observation statistics are frozen in it."""
        normalizer = self.statistics.normalizer() if self.task.normalize else None
        return Job(self.strategy.ask(), normalizer, self.progress.episode_cap)

    def plan(self) -> Plan:
        """Which members make this generation."""
        return Plan(
            self.strategy.population,
            episodes=self.config.episodes_per_member,
            center=self.config.center_episodes,
            unit=2 if self.task.antithetic else 1,
            min_steps=self.config.min_steps,
            refuse=self._refusal(self.task, self.generation),
        )

    def _refusal(self, task: Episodes, generation: int) -> Callable[[Result], None] | None:
        """What stops the run at an episode that failed, and names it; None where such a member ranks last."""
        return partial(_refuse, task, generation) if self.config.on_error == "stop" else None

    def facts(self, plan: Plan, seconds: float) -> Facts:
        """What leaves a complete generation. Statistics are merged in member order, never in order of arrival."""
        assert plan.complete is not None
        results, center = plan.of_members(), plan.of_center()
        members = (plan.complete, self.config.episodes_per_member)
        counted = [r for r in results if r.statistics is not None]
        moments = np.zeros((2, self.task.statistics_size))
        for result in counted:
            assert result.statistics is not None
            moments += result.statistics
        used = sum(r.length for r in results) + sum(r.length for r in center)
        evaluated = sum(r.length for r in plan.results.values())
        fitness = np.array([r.fitness for r in results]).reshape(members).mean(axis=1)
        if np.isnan(fitness).all():  # checked before the commit: the state must be able to move by a fact
            _refuse(self.task, self.generation, results[0])
        return Facts(
            generation=np.array([self.generation]),
            fitness=np.where(np.isnan(fitness), -np.inf, fitness),
            returns=np.array([r.total for r in results]).reshape(members).mean(axis=1),
            lengths=np.array([r.length for r in results], dtype=np.int32).reshape(members),
            center_returns=np.array([r.total for r in center]),
            center_lengths=np.array([r.length for r in center], dtype=np.int32),
            statistics_count=np.array([sum(r.length for r in counted)]),
            statistics_total=moments[0],
            statistics_squares=moments[1],
            discarded_steps=np.array([evaluated - used + plan.dropped_steps]),
            seconds=np.array([seconds]),
        )

    def move(self, facts: Facts) -> Row:
        """Tell the strategy, merge the observation statistics, and count."""
        row = super().move(facts)
        count = int(facts.statistics_count[0])
        self.statistics = self.statistics.plus(count, facts.statistics_total, facts.statistics_squares)
        self.progress.episode_cap = next_cap(self.config, self.progress.episode_cap, facts.lengths)
        if self.starts.several:
            row["start"] = self.starts.current
            if self.starts.over(self.progress.env_steps):
                row["note"] = self._end_start()
        return row

    def _end_start(self) -> str:
        """Begin the next start, or go on from the best after the last; returns what the one that ended came to."""
        progress, starts = self.progress, self.starts
        readings = newest(progress.recent, CERTAIN)
        score = statistics.fmean(readings) if readings else -math.inf  # judged as the best centre is
        chosen = starts.end(score, progress.env_steps, self._place())
        if chosen is None:
            center = self.task.network.initial(generator(self.config.seed, Purpose.INITIAL, starts.number))
            elsewhere = {"center": center}
            if isinstance(self.strategy, Restarts):
                elsewhere["origin"] = center  # around which it restarts
            chosen = replace(self._first, arrays=self._first.arrays | elsewhere)
        self._go_on_from(chosen)
        progress.recent, progress.goal_streak = [], 0
        return starts.described(score)

    def _place(self) -> Snapshot:
        """What a start comes to: the strategy's state, the observation statistics and the cap, without the counters."""
        arrays, values = flatten(self.strategy.state_dict())
        arrays |= {"statistics.total": self.statistics.total, "statistics.squares": self.statistics.squares}
        values |= {"statistics_count": self.statistics.count, "episode_cap": self.progress.episode_cap}
        return copied(Snapshot(values.pop("generation"), arrays, values))

    def _go_on_from(self, place: Snapshot) -> None:
        """Train from there; generations keep counting, so that no perturbation is used twice."""
        values = {**place.values, "generation": self.generation}
        self.strategy.load_state_dict(unflatten(self.strategy.state_dict(), place.arrays, values))
        self.statistics, self.progress.episode_cap = self._statistics(place), values["episode_cap"]

    def conclude(self, engine: Evaluates, record: Record) -> Row | None:
        """Evaluate the last centre as the next generation would: the same episodes, which are not committed yet."""
        plan = Plan(0, center=self.config.center_episodes, refuse=self._refusal(self.task, self.generation))
        engine.evaluate(self.job(), plan)
        returns = [result.total for result in plan.of_center()]
        few = min(CERTAIN, self.strategy.population * self.config.episodes_per_member)
        few, share = (1, 0.0) if self.config.worlds_on_device else (few, JUDGED)  # the device plays every member
        return conclude(record, self, returns, lambda *wanted: self._play(engine, *wanted), few, share)

    def _play(self, engine: Evaluates, snapshot: Snapshot, episodes: int, first: int) -> list[float]:
        """The returns of a snapshot's centre, in episodes of a generation to come: no choice was made by them."""
        normalizer = self._statistics(snapshot).normalizer() if self.task.normalize else None
        generation, task = self.generation + 1 + first, replace(self.task, center_episodes=episodes)
        job = Job.of_center(snapshot.arrays["center"], normalizer, generation)
        plan = Plan(0, center=episodes, refuse=self._refusal(task, generation))
        engine.evaluate(replace(job, only_center=True), plan)
        return [result.total for result in plan.of_center()]

    def begin_from(self, center: np.ndarray, statistics: Statistics | None = None, reference: Any = None) -> None:
        """Start from given parameters, with the statistics or the reference batch they were trained with."""
        self.task = self.task.with_reference(reference)
        self.strategy.center.numpy()[:] = center
        if statistics is not None:
            self.statistics = statistics

    def snapshot(self) -> Snapshot:
        """Everything that is state, ready to run the next generation."""
        snapshot = super().snapshot()
        arrays = {"statistics.total": self.statistics.total, "statistics.squares": self.statistics.squares}
        reference = getattr(self.task.network, "reference", None)
        if reference is not None:
            arrays["reference"] = reference
        started, values = self.starts.state()
        arrays, values = arrays | started, {"statistics_count": self.statistics.count, **values}
        return Snapshot(self.generation, snapshot.arrays | arrays, snapshot.values | values)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        super().restore(snapshot)
        self.task = self.task.with_reference(snapshot.arrays.get("reference"))
        self.statistics = self._statistics(snapshot)
        self.starts.load(snapshot)

    @staticmethod
    def _statistics(snapshot: Snapshot) -> Statistics:
        arrays, count = snapshot.arrays, snapshot.values["statistics_count"]
        return Statistics(count, arrays["statistics.total"].copy(), arrays["statistics.squares"].copy())

    def close(self) -> None:
        """Free the noise table."""
        if self.table is not None:
            self.table.close()


def _refuse(task: Episodes, generation: int, result: Result) -> None:
    """Raises a RunError that names an episode that failed."""
    where = task.describe(generation, result.item)
    raise RunError(f"{where}: {result.error}\n{result.trace}".rstrip())


def next_cap(config: SynchronousConfig, cap: int | None, lengths: np.ndarray) -> int | None:
    """OpenAI's rule: grow when enough episodes reach the cap. pytorch-es's: none at first, then twice the mean length."""
    if config.adaptive_cap == "twice-mean":
        return max(1, round(2 * float(lengths.mean())))
    growth = config.cap_growth
    if config.adaptive_cap == "threshold" and cap is not None and (lengths >= cap).mean() >= growth.threshold:
        return math.ceil(cap * growth.factor)
    return cap


def start(config: Any, environment: Environment, about: About, new: bool = False) -> EvolutionStrategy:
    """The state before the first generation. What does not fit raises UsageError."""
    if new:
        refuse_whole_numbers(spaces.described(about, "action_space"))
    task = build_task(config, environment, about)
    network = task.network
    if new and getattr(network, "normalized", False):
        with probed(environment, config.step_timeout) as probe:
            task = task.with_reference(collect_reference(probe, config.reference_frames, config.seed))
    make = find_strategy(config.strategy)
    table = open_table(config.noise, config.seed, config.table_size, network.dimension)
    center = network.initial(generator(config.seed, Purpose.INITIAL))
    strategy = build_strategy(make, center, {**vars(config), "noise": task.noise(table)})
    state = EvolutionStrategy(config, task, strategy, table)
    if not getattr(network, "batched", True):
        text = f"network {network.path} cannot be batched by torch.vmap: its members are run one by one"  # type: ignore[attr-defined]
        state.notices.append(text)
    return state


def open_engine(state: EvolutionStrategy, site: Site) -> Engine:
    """Worker processes or a device of this machine, or an engine on every node of the cluster that this process is in."""
    config, task, table = state.config, state.task, state.table
    if config.on_device:
        return open_device_engine(state, site)
    if config.engine == "local":
        return local_engine(task, config.workers, table, config.step_timeout)
    demand = demand_of(config, config.workers)
    seeded = (config.seed, config.table_size) if table else None
    return ray_engine(task, demand, site, seeded, table, config.step_timeout, config.inexact)


def synchronous(name: str, config: type[SynchronousConfig]) -> Algorithm:
    """A synchronous algorithm: the strategy that its configuration names, on episodes."""
    return Algorithm(
        name,
        config,
        start,
        policy_task=build_task,
        open=open_engine,
        workers=lambda config: Workers(config.workers),
        environment=environment_options,
        complete=choose_device,
    )


ES = synchronous("es", ESConfig)
