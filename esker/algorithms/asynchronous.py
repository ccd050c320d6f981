"""The asynchronous loop of ACEM-RL, (1+1)-ES and AES-RL: no barrier, every result moves the distribution at once.

An idle actor gets, by the share controller, an RL individual (copied, trained on the newest critic, rolled out) or an ES
individual (rolled out at once). Where the strategy compares with the mean, the mean as it was when the individual ended is
evaluated next. The critic trains in its own process, never ahead of the environment steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from esker.algorithms.algorithm import Algorithm, Workers
from esker.algorithms.critic_trainer import CriticTrainer
from esker.algorithms.hybrid import (
    Hybrid,
    Parts,
    center_trial,
    journal_row,
    learning_key,
    mean_of,
    random_trial,
    reset_seed,
    sigma_of,
    store,
)
from esker.algorithms.hybrid_setup import hybrid
from esker.algorithms.observer import Row
from esker.algorithms.share import ShareController
from esker.config.hybrids import ACTORS, AsynchronousConfig
from esker.engines.pool import ask_all
from esker.learners.td3 import initial_actor
from esker.noise.address import Purpose, generator
from esker.tasks.hybrid import HybridTask
from esker.tasks.requests import Arrays, Reply, Rollout, Training, Trial, TrialResult

RECENT = 10  # an RL individual gets as many updates as this many of the last episodes had steps
Course = Generator[Trial, TrialResult, None]  # an individual's course: it yields trials and is sent their results


@dataclass(frozen=True)
class Told:
    """An individual that moved the distribution, and by how much."""

    fitness: float
    length: int
    rl: bool
    step: float
    loss: float | None  # of its training


class Asynchronous(Hybrid):
    """The state of an `acem-rl`, `one-plus-one` or `aes-rl` run."""

    def __init__(self, config: AsynchronousConfig, task: HybridTask, strategy: Any) -> None:
        super().__init__(config, task)
        self.strategy = strategy
        self.mean_episodes: int | None = getattr(config, "mean_episodes", None)  # None: nothing is compared with the mean
        # An evaluation of the mean is also that of the centre, where it has as many episodes.
        self.mean_serves = (self.mean_episodes or 0) >= config.center_episodes
        self.critic = CriticTrainer(task, config.critic_chunk, bounded=True)
        self.share = ShareController(config.rl_ratio, config.rl_k, config.seed)
        self.lengths: deque[int] = deque(maxlen=RECENT)
        self.evaluations = 0
        self._waiting: deque[tuple[Course, Trial]] = deque()  # trials that come before any new individual
        self._under_way: dict[int, Course] = {}
        self.seal()

    def evolve(self, parts: Parts) -> Row:
        """Run individuals until enough of them moved the distribution, and the mean they began with is evaluated."""
        config = self.config
        self._told: list[Told] = []
        self._start = self.strategy.mean
        self._center: TrialResult | None = None
        if not self.mean_serves:
            self._enqueue(self._center_evaluation())
        while len(self._told) < config.results_per_generation and not self.spent:
            self._work(parts)
        while self.spent and (self._under_way or self._waiting):  # actors finish their work, which is told
            self._work(parts, begin_new=False)
        if self._center is None and self.mean_serves:
            self._enqueue(self._center_evaluation())
        while self._center is None:
            self._work(parts, begin_new=not (config.deterministic or self.spent))
        return self._row(self._center)

    def _individual(self, parts: Parts) -> Course:
        """One individual: trained or not, rolled out, stored, compared with the mean, told."""
        number = self.share.issued
        rl = self.share.next_is_rl(self.progress.training_steps >= self.config.rl_start)
        result = yield self._trial(number, self._training(number) if rl else None)
        self._store(parts, result)
        if self.mean_episodes is None:
            self._tell(result, rl)
            return
        mean = self.strategy.mean  # a new tensor replaces this one when the mean moves
        evaluated = yield self._mean_trial(self.mean_episodes)
        if self.mean_serves and mean is self._start and self._center is None:
            self._center = evaluated  # counted with the row
        else:
            self.progress.count(evaluated)
        self._tell(result, rl, evaluated.fitness)

    def _warm_up(self, parts: Parts) -> Course:
        """One episode of random play."""
        self.progress.warm_episodes += 1
        result = yield random_trial(self.task, self.progress.warm_episodes - 1)
        self._store(parts, result)

    def _center_evaluation(self) -> Course:
        """The mean that this row began with."""
        start = self._start
        result = yield center_trial(self.task, start.numpy(), self.generation, self.config.center_episodes)
        if start is self._start and self._center is None:
            self._center = result  # counted with the row
        else:
            self.progress.count(result)

    def _work(self, parts: Parts, begin_new: bool = True) -> None:
        """Give every idle actor something to do, then take the first reply."""
        while parts.pool.idle("actor") and (self._waiting or begin_new):
            if not self._waiting:
                warm = self.progress.training_steps >= self.warm_until
                self._enqueue(self._individual(parts) if warm else self._warm_up(parts))
            course, trial = self._waiting.popleft()
            self._under_way[parts.pool.submit(trial)] = course
        self._train_critic(parts)
        for ticket, reply in parts.pool.wait():
            if not self.critic.hear(ticket, reply):
                self._enqueue(self._under_way.pop(ticket), reply)
                self._catch_critic_up(parts)
            self.progress.critic_updates = self.critic.updates

    def _enqueue(self, course: Course, reply: Reply | None = None) -> None:
        """Advance a course to its next trial, which waits for an actor; it may end instead."""
        try:
            self._waiting.append((course, course.send(reply)))  # type: ignore[arg-type]
        except StopIteration:
            return

    @property
    def _trains(self) -> bool:
        return bool(self.config.rl_ratio) and self.progress.training_steps >= self.warm_until

    def _train_critic(self, parts: Parts) -> None:
        """In the background."""
        if self._trains and not self.config.deterministic:
            self.critic.begin(parts.pool, self.strategy.mean.numpy(), self.progress.training_steps)

    def _catch_critic_up(self, parts: Parts) -> None:
        """Deterministic: the critic makes all updates that are due, and nothing else happens meanwhile."""
        steps = self.progress.training_steps
        while self._trains and self.config.deterministic and self.critic.due(steps):
            (reply,) = ask_all(parts.pool, [self.critic.work(self.strategy.mean.numpy(), steps)])
            self.critic.done(reply)

    def _trial(self, number: int, training: Training | None) -> Trial:
        seed = reset_seed(self.task, Purpose.EPISODE, number)
        name = f"{self.task.environment.name}, individual {number}, seed {seed}"
        return Trial(name, Rollout((seed,), self.strategy.ask().numpy()), training)

    def _training(self, number: int) -> Training:
        updates = sum(self.lengths)
        self.progress.actor_updates += updates
        key = learning_key(self.task, Purpose.LEARNING, number)
        return Training(self.critic.state["critic"], updates, key, self.progress.training_steps)

    def _mean_trial(self, episodes: int) -> Trial:
        where = [(self.evaluations, episode) for episode in range(episodes)]
        seeds = tuple(reset_seed(self.task, Purpose.EVALUATION, *place) for place in where)
        name = f"{self.task.environment.name}, evaluation {self.evaluations} of the mean"
        self.evaluations += 1
        return Trial(name, Rollout(seeds, self.strategy.mean.numpy(), record=False))

    def _store(self, parts: Parts, result: TrialResult) -> None:
        store(parts, self.progress, result)
        self.lengths.extend(result.lengths)

    def _tell(self, result: TrialResult, rl: bool, *mean_fitness: float) -> None:
        step = float(self.strategy.tell(result.parameters, result.fitness, *mean_fitness))
        self._told.append(Told(result.fitness, sum(result.lengths), rl, step, result.actor_loss))

    def _row(self, center: TrialResult) -> Row:
        told = self._told
        self.progress.count(center)
        return journal_row(
            self.config,
            self.progress,
            [one.fitness for one in told],
            [one.length for one in told],
            center,
            rl_return_mean=mean_of([one.fitness for one in told if one.rl]),
            es_return_mean=mean_of([one.fitness for one in told if not one.rl]),
            step_mean=mean_of([one.step for one in told]),
            rl_share=self.share.share if self.share.counted else None,
            sigma=sigma_of(self.strategy.var.numpy()),
            critic_loss=self.critic.loss,
            actor_loss=mean_of([one.loss for one in told if one.loss is not None]),
        )

    def arrays(self) -> Arrays:
        """Mean, variance, a ring of results where there is one, and the critics' state."""
        tensors = {n: v.numpy().copy() for n, v in self.strategy.state_dict().items() if isinstance(v, torch.Tensor)}
        return {"center": tensors.pop("mean"), **tensors, **self.critic.state}

    def values(self) -> dict[str, Any]:
        """Counters of strategy, shares and evaluations."""
        plain = {n: v for n, v in self.strategy.state_dict().items() if not isinstance(v, torch.Tensor)}
        return {
            "strategy": plain,
            "share": self.share.state(),
            "lengths": list(self.lengths),
            "evaluations": self.evaluations,
        }

    def load(self, arrays: Arrays, values: dict[str, Any]) -> None:
        """Continue from `arrays` and `values`."""
        tensors = {
            name: torch.from_numpy(np.array(array)) for name, array in arrays.items() if not name.startswith("critic")
        }
        self.strategy.load_state_dict({"mean": tensors.pop("center"), **tensors, **values["strategy"]})
        self.critic.load(arrays)
        self.share.load(values["share"])
        self.lengths.extend(values["lengths"])
        self.evaluations = values["evaluations"]


def asynchronous(name: str, config: type[AsynchronousConfig], strategy: Callable[[Any, np.ndarray], Any]) -> Algorithm:
    """An asynchronous algorithm: `strategy` makes what it moves from a configuration and the first mean."""

    def state(config: AsynchronousConfig, task: HybridTask) -> Asynchronous:
        first = initial_actor(task.spec, generator(config.seed, Purpose.INITIAL))
        return Asynchronous(config, task, strategy(config, first))

    return hybrid(name, config, state, workers)


def workers(config: AsynchronousConfig) -> Workers:
    """Actors, and a critic in its own process; deterministic: one actor, which also trains the critic."""
    if config.deterministic:
        return Workers(1 if config.workers is None else config.workers, actors_train=True)
    return Workers(ACTORS if config.workers is None else config.workers, critic=True, actors_train=True)
