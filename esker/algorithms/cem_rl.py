"""CEM-RL (Pourchot and Sigaud 2019) and P-CEM-RL: a population of which some are trained by a shared critic first.

Serial: for each RL member in turn the critic trains with it as bootstrap actor, then the member on the critic. P-CEM-RL:
first all critic training in that order, then the members train in parallel on the critic as it is; or, with a parallel
critic, the critic trains all the time in a separate process, with the mean as bootstrap actor. Batched, both train the
critic first and then all members at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from esker.algorithms.algorithm import Workers
from esker.algorithms.critic_trainer import CriticTrainer
from esker.algorithms.hybrid import (
    Hybrid,
    Parts,
    evaluate_center,
    journal_row,
    learning_key,
    mean_of,
    reset_seed,
    sigma_of,
    store,
    warm_up,
)
from esker.algorithms.hybrid_setup import hybrid
from esker.algorithms.observer import Row
from esker.config.hybrids import ACTORS, CEMRLConfig, PCEMRLConfig
from esker.learners.td3 import initial_actor
from esker.noise.address import Purpose, generator
from esker.strategies.cem import CEM
from esker.system.cores import available_cores
from esker.tasks.hybrid import HybridTask, HybridWorker
from esker.tasks.requests import Arrays, CriticWork, Reply, Rollout, Training, Trial, TrialResult


class CEMRL(Hybrid):
    """The state of a `cem-rl` or `p-cem-rl` run."""

    def __init__(self, config: CEMRLConfig, task: HybridTask) -> None:
        super().__init__(config, task)
        self.strategy = CEM(
            initial_actor(task.spec, generator(config.seed, Purpose.INITIAL)),
            population=config.population,
            var=config.var_init,
            antithetic=config.antithetic,
            damp_init=config.damp_init,
            damp_limit=config.damp_limit,
            damp_tau=config.damp_tau,
            divide_variance=config.divide_variance,
            seed=config.seed,
        )
        self.rl = 0  # members of the generation under way that are trained
        self.critic_losses: list[float] = []  # of the generation under way
        self.actor_losses: list[float] = []
        self._bench: HybridWorker | None = None
        self.parallel = getattr(config, "parallel_critic", False)
        self.critic = CriticTrainer(task, getattr(config, "critic_chunk", 1), bounded=False)
        self.seal()

    in_parallel = False  # whether members train where they are rolled out

    def evolve(self, parts: Parts) -> Row:
        """One generation: sample, train some, roll out all, refit."""
        config, progress = self.config, self.progress
        if self.parallel:
            parts.aside = lambda ticket, reply: self._critic_done(parts, ticket, reply)
        warm_up(parts, self, config.population)
        self.critic_losses, self.actor_losses = [], []
        spent = self.spent  # by random play: the row is the centre's alone
        self.rl = config.rl_population if progress.training_steps >= config.rl_start else 0
        center = self.strategy.mean.numpy().copy()
        evaluated = evaluate_center(parts, self.task, center, self.generation, config.center_episodes)
        progress.count(evaluated)
        tried = [] if spent else self._move(parts)
        return journal_row(
            config,
            progress,
            [one.fitness for one in tried],
            [length for one in tried for length in one.lengths],
            evaluated,
            rl_return_mean=mean_of([one.fitness for one in tried[: self.rl]]),
            es_return_mean=mean_of([one.fitness for one in tried[self.rl :]]),
            sigma=sigma_of(self.strategy.var.numpy()),
            critic_loss=mean_of(self.critic_losses),
            actor_loss=mean_of(self.actor_losses),
        )

    def _move(self, parts: Parts) -> list[TrialResult]:
        """Sample, train and roll out; store what happened and refit the distribution to it."""
        tried = self._generation(parts, self.strategy.ask().numpy())
        self.progress.last_steps = sum(sum(t.lengths) for t in tried)
        for one in tried:
            store(parts, self.progress, one)
        rows = np.stack([one.parameters for one in tried if one.parameters is not None])
        self.strategy.tell(rows, [one.fitness for one in tried])
        return tried

    def _generation(self, parts: Parts, members: np.ndarray) -> list[TrialResult]:
        """Every member's rollout; the first ones are trained before it."""
        rl, steps = self.rl, self.progress.last_steps
        trainings: list[Training] = []
        if self.config.batched_rl and rl:
            members = self._train_at_once(parts, members, steps)
        elif self.in_parallel:
            trainings = self._parallel_trainings(parts, members[:rl], steps)
        else:
            members = self._train_in_turn(parts, members, steps)
        self.progress.actor_updates += rl * steps
        trials = [self._trial(number, row) for number, row in enumerate(members)]
        for number, training in enumerate(trainings):
            trials[number] = replace(trials[number], training=training)
        tried = parts.ask(trials)
        self.actor_losses.extend(one.actor_loss for one in tried if one.actor_loss is not None)
        return tried

    def _train_in_turn(self, parts: Parts, members: np.ndarray, steps: int) -> np.ndarray:
        """Critic, actor, critic, actor, …: in this process, since each depends on the one before."""
        trained = members.copy()
        worker = self._own_worker(parts)
        for number in range(self.rl):
            critic = self._train_critic(worker, trained[number], number, steps)
            trained[number], loss = worker.improve(trained[number], self._training(critic, number, steps))
            self.actor_losses.append(loss)
        return trained

    def _parallel_trainings(self, parts: Parts, members: np.ndarray, steps: int) -> list[Training]:
        """First the critic; then each member's training, to be done where it is rolled out."""
        critic = self._critic_first(parts, members, steps)
        return [self._training(critic, number, steps) for number in range(len(members))]

    def _train_at_once(self, parts: Parts, members: np.ndarray, steps: int) -> np.ndarray:
        """First the critic; then all RL members in this process, by batched updates."""
        critic = self._critic_first(parts, members[: self.rl], steps)
        together, loss = self._own_worker(parts).improve_together(members[: self.rl], self._training(critic, 0, steps))
        self.actor_losses.append(loss)
        return np.concatenate([together, members[self.rl :]])

    def _critic_first(self, parts: Parts, members: np.ndarray, steps: int) -> np.ndarray:
        """The critic after its training, in sequence over the members; or as its own process has it now."""
        if self.parallel:
            self.critic.begin(parts.pool, self.strategy.mean.numpy().copy(), self.progress.training_steps)
        else:
            worker = self._own_worker(parts)
            for number, row in enumerate(members):
                self._train_critic(worker, row, number, steps)
        return self.critic.state["critic"]

    def _train_critic(self, worker: HybridWorker, actor: np.ndarray, number: int, steps: int) -> np.ndarray:
        """(Steps of the last generation)/(RL members) updates with this member as bootstrap actor."""
        updates = steps // max(self.rl, 1)
        key = learning_key(self.task, Purpose.CRITIC, self.generation, number)
        self.critic.done(
            worker.train_critic(CriticWork(actor, updates, key, self.progress.training_steps, self.critic.state))
        )
        self._count_critic()
        return self.critic.state["critic"]

    def _count_critic(self) -> None:
        """Count what the critic has just done."""
        self.progress.critic_updates = self.critic.updates
        if self.critic.loss is not None:
            self.critic_losses.append(self.critic.loss)

    def _critic_done(self, parts: Parts, ticket: int, reply: Reply) -> None:
        """The critic's process finished a chunk: the next one begins at once, with the newest mean."""
        if self.critic.hear(ticket, reply):
            self._count_critic()
            self.critic.begin(parts.pool, self.strategy.mean.numpy().copy(), self.progress.training_steps)

    def _training(self, critic: np.ndarray, number: int, steps: int) -> Training:
        key = learning_key(self.task, Purpose.LEARNING, self.generation, number)
        return Training(critic, steps, key, self.progress.training_steps)

    def _trial(self, number: int, row: np.ndarray) -> Trial:
        seed = reset_seed(self.task, Purpose.EPISODE, self.generation, number)
        name = f"{self.task.environment.name}, generation {self.generation}, member {number}, seed {seed}"
        return Trial(name, Rollout((seed,), row))

    def _own_worker(self, parts: Parts) -> HybridWorker:
        if self._bench is None:
            self._bench = self.task.open(parts.replay.rows, [0])
        return self._bench

    def arrays(self) -> Arrays:
        """Mean, variance and the critics' state."""
        return {
            "center": self.strategy.mean.numpy().copy(),
            "var": self.strategy.var.numpy().copy(),
            **self.critic.state,
        }

    def values(self) -> dict[str, Any]:
        """The damping."""
        return {"damp": self.strategy.damp}

    def load(self, arrays: Arrays, values: dict[str, Any]) -> None:
        """Continue from `arrays` and `values`."""
        mean, var = (torch.from_numpy(np.array(arrays[name])) for name in ("center", "var"))
        state = {"mean": mean, "var": var, "damp": values["damp"], "generation": self.generation}
        self.strategy.load_state_dict(state)
        self.critic.load(arrays)


class PCEMRL(CEMRL):
    """The state of a `p-cem-rl` run: the critic first, then the members train where they are rolled out."""

    in_parallel = True


def workers(config: CEMRLConfig) -> Workers:
    """As many as members at most; this process trains."""
    most = config.population if config.address is not None else available_cores()
    return Workers(most if config.workers is None else config.workers, learns_in_loop=True)


def parallel_workers(config: PCEMRLConfig) -> Workers:
    """Actors that train and roll out; the critic here, or all the time in its own process."""
    actors = ACTORS if config.workers is None else config.workers
    apart = config.parallel_critic
    return Workers(actors, critic=apart, actors_train=True, learns_in_loop=not apart)


CEM_RL = hybrid("cem-rl", CEMRLConfig, CEMRL, workers)
P_CEM_RL = hybrid("p-cem-rl", PCEMRLConfig, PCEMRL, parallel_workers)
