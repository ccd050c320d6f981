"""The asynchronous loop of ACEM-RL, (1+1)-ES and AES-RL: no barrier, every result moves the distribution at once.

An idle actor gets, by the share controller, an RL individual (copied, trained on the newest critic, rolled out) or an ES
individual (rolled out at once). Where the strategy compares with the mean, the mean as it was when the individual ended is
evaluated next. The critic trains in a process of its own, never ahead of the environment steps.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from esker.algorithms.critic_trainer import CriticTrainer
from esker.algorithms.hybrid import (
    Hybrid,
    HybridProgress,
    Parts,
    center_trial,
    count_center,
    journal_row,
    learning_key,
    random_trial,
    reset_seed,
    sigma_of,
    store,
)
from esker.algorithms.share import ShareController
from esker.config.hybrids import ACEMRLConfig, AESRLConfig, AsynchronousConfig, OnePlusOneConfig
from esker.engines.pool import ask_all
from esker.learners.td3 import initial_actor
from esker.noise.address import Purpose, generator
from esker.noise.directions import Row
from esker.strategies import AES, AsyncCEM, OnePlusOne
from esker.tasks.hybrid import HybridTask
from esker.tasks.requests import Answer, Arrays, Episodes, Training, Trial, Tried

RECENT = 10  # an RL individual gets as many updates as so many of the last episodes had steps


@dataclass(frozen=True)
class Pending:
    """What a ticket was for: warm-up, an individual, the fitness of a mean for an individual, or the centre of the row."""

    kind: str
    rl: bool = False
    mean: torch.Tensor | None = None  # the very tensor, which is another one as soon as the mean has moved
    tried: Tried | None = None


@dataclass(frozen=True)
class Told:
    """An individual that moved the distribution, and by how much."""

    fitness: float
    length: int
    rl: bool
    step: float


class Asynchronous(Hybrid):
    """The state of an `acem-rl`, `one-plus-one` or `aes-rl` run."""

    def __init__(self, config: AsynchronousConfig, task: HybridTask) -> None:
        self.config: AsynchronousConfig = config
        self.task = task
        self.progress = HybridProgress()
        self.strategy = build_strategy(config, initial_actor(task.spec, generator(config.seed, Purpose.INITIAL)))
        self.compares = not isinstance(self.strategy, AsyncCEM)
        # An evaluation of the mean is also that of the centre, where it has as many episodes.
        self.mean_serves = self.compares and config.mean_episodes >= config.center_episodes  # type: ignore[attr-defined]
        self.critic = CriticTrainer(task, config.critic_chunk, bounded=True)
        self.share = ShareController(config.rl_ratio, config.rl_k, config.seed)
        self.lengths: deque[int] = deque(maxlen=RECENT)
        self._pending: dict[int, Pending] = {}
        self._urgent: deque[tuple[Trial, Pending]] = deque()
        self.evaluations = 0
        self.settle()

    @property
    def mean(self) -> Row:
        """The current mean."""
        return self.strategy.mean.numpy()

    def advance(self, parts: Parts) -> dict[str, Any]:
        """Go on until so many individuals moved the distribution, and the mean they began with is evaluated."""
        self._told: list[Told] = []
        self._start = self.strategy.mean
        self._center: Tried | None = None
        if not self.mean_serves:
            self._evaluate_start()
        while len(self._told) < self.config.results_per_generation and not self.spent:
            self._go_on(parts)
        while self.spent and (self._pending or self._urgent):  # actors finish what they are at, and it is told
            self._go_on(parts, only_urgent=True)
        if self._center is None and self.mean_serves:
            self._evaluate_start()
        while self._center is None:
            self._go_on(parts, only_urgent=self.config.deterministic or self.spent)
        return self._row(self._center)

    def _go_on(self, parts: Parts, only_urgent: bool = False) -> None:
        """Give the idle work, then wait for whoever answers first."""
        while parts.pool.idle("actor") and (self._urgent or not only_urgent):
            trial, pending = self._urgent.popleft() if self._urgent else self._next()
            self._pending[parts.pool.submit(trial)] = pending
        self._train_critic(parts)
        for ticket, answer in parts.pool.wait():
            if not self.critic.hear(ticket, answer):
                self._hear(parts, self._pending.pop(ticket), answer)
            self.progress.critic_updates = self.critic.updates

    def _train_critic(self, parts: Parts) -> None:
        """In the background; or, deterministic, by asking for nothing else meanwhile."""
        steps = self.progress.training_steps
        if self.config.deterministic or steps < self.warm_until or not self.config.rl_ratio:
            return
        self.critic.begin(parts.pool, self.mean, steps)

    def _catch_critic_up(self, parts: Parts) -> None:
        """Deterministic: the critic does now what it may do by now."""
        while self.critic.due(self.progress.training_steps):
            (answer,) = ask_all(parts.pool, [self.critic.work(self.mean, self.progress.training_steps)])
            self.critic.done(answer)
        self.progress.critic_updates = self.critic.updates

    def _next(self) -> tuple[Trial, Pending]:
        """Random play at first, then an individual."""
        progress = self.progress
        if progress.training_steps < self.warm_until:
            progress.warm_episodes += 1
            return random_trial(self.task, progress.warm_episodes - 1), Pending("warm-up")
        number = self.share.issued
        rl = self.share.next_is_rl(progress.training_steps >= self.config.rl_start)
        training = self._training(number) if rl else None
        seed = reset_seed(self.task, Purpose.EPISODE, number)
        name = f"{self.task.environment.name}, individual {number}, seed {seed}"
        return Trial(name, Episodes((seed,), self.strategy.ask().numpy()), training), Pending("individual", rl)

    def _training(self, number: int) -> Training:
        updates = sum(self.lengths)
        self.progress.actor_updates += updates
        key = learning_key(self.task, Purpose.LEARNING, number)
        return Training(self.critic.state["critic"], updates, key, self.progress.training_steps)

    def _hear(self, parts: Parts, pending: Pending, answer: Answer) -> None:
        """What an answer leads to."""
        assert isinstance(answer, Tried)
        if pending.kind in ("warm-up", "individual"):
            store(parts, self.progress, answer)
            self.lengths.extend(answer.lengths)
            if pending.kind == "individual":
                self._ended(answer, pending.rl)
            trains = self.config.rl_ratio and self.progress.training_steps >= self.warm_until
            if self.config.deterministic and trains:
                self._catch_critic_up(parts)
            return
        serves = pending.kind == "center" or self.mean_serves
        if serves and pending.mean is self._start and self._center is None:
            self._center = answer  # counted with the row
        else:
            self.progress.env_steps += sum(answer.lengths)
            self.progress.episodes += len(answer.lengths)
        if pending.tried is not None:
            self._tell(pending.tried, pending.rl, answer.fitness)

    def _ended(self, tried: Tried, rl: bool) -> None:
        """An individual ended: tell it, or first see how good the mean is at this moment."""
        if not self.compares:
            self._tell(tried, rl, None)
            return
        seeds = tuple(
            reset_seed(self.task, Purpose.EVALUATION, self.evaluations, episode)
            for episode in range(self.config.mean_episodes)  # type: ignore[attr-defined]
        )
        name = f"{self.task.environment.name}, evaluation {self.evaluations} of the mean"
        self.evaluations += 1
        pending = Pending("mean", rl, self.strategy.mean, tried)
        self._urgent.append((Trial(name, Episodes(seeds, self.mean, record=False)), pending))

    def _tell(self, tried: Tried, rl: bool, mean_fitness: float | None) -> None:
        assert tried.parameters is not None
        if isinstance(self.strategy, AsyncCEM):
            step = float(self.strategy.tell(tried.parameters, tried.fitness))
        else:
            assert mean_fitness is not None
            step = float(self.strategy.tell(tried.parameters, tried.fitness, mean_fitness))
        self._told.append(Told(tried.fitness, sum(tried.lengths), rl, step))

    def _evaluate_start(self) -> None:
        trial = center_trial(self.task, self._start.numpy(), self.generation, self.config.center_episodes)
        self._urgent.append((trial, Pending("center", mean=self._start)))

    def _row(self, center: Tried) -> dict[str, Any]:
        improved = count_center(self.config, self.progress, center)
        told = self._told
        row = journal_row(
            self.progress,
            [one.fitness for one in told],
            [one.length for one in told],
            center,
            improved=improved,
            rl_return_mean=_mean([one.fitness for one in told if one.rl]),
            es_return_mean=_mean([one.fitness for one in told if not one.rl]),
            step_mean=_mean([one.step for one in told]),
            rl_share=self.share.share if self.share.counted else None,
            sigma=sigma_of(self.strategy.var.numpy()),
            critic_loss=self.critic.loss,
        )
        self.progress.generation += 1
        return row

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


def build_strategy(config: AsynchronousConfig, mean: Row) -> AsyncCEM | OnePlusOne | AES:
    """The strategy that a configuration names."""
    if isinstance(config, ACEMRLConfig):
        return AsyncCEM(
            mean,
            population=config.population,
            var=config.var_init,
            damp_init=config.damp_init,
            damp_limit=config.damp_limit,
            damp_tau=config.damp_tau,
            divide_variance=config.divide_variance,
            seed=config.seed,
        )
    if isinstance(config, OnePlusOneConfig):
        return OnePlusOne(
            mean,
            var=config.var_init,
            success_rate=config.success_rate,
            tau=config.success_tau,
            var_floor=config.var_floor,
            seed=config.seed,
        )
    assert isinstance(config, AESRLConfig)
    return AES(
        mean,
        var=config.var_init,
        mean_update=config.mean_update,
        var_update=config.var_update,
        param=config.mean_update_param,
        fixed_n=config.fixed_var_n,
        negative_ratio=config.negative_ratio,
        var_floor=config.var_floor,
        seed=config.seed,
    )


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
