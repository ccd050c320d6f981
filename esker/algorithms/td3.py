"""TD3 as an algorithm: one environment, one update for every step; a generation is some whole episodes.

Exploration and batches are addressed by episode, and a generation begins with a reset: a resumed run sees the same
numbers as one that never stopped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from esker.algorithms.algorithm import Workers
from esker.algorithms.hybrid import (
    Hybrid,
    Parts,
    evaluate_center,
    journal_row,
    learning_key,
    reset_seed,
)
from esker.algorithms.hybrid_setup import hybrid
from esker.algorithms.observer import Row
from esker.config.hybrids import TD3Config
from esker.learners.batches import Batches
from esker.learners.td3 import TD3 as Learner
from esker.noise.address import Purpose, generator
from esker.system import blas
from esker.tasks.hybrid import HybridTask, use_one_torch_thread
from esker.tasks.requests import Arrays
from esker.tasks.rollouts import Act, Player, finite


class TD3Run(Hybrid):
    """The state of a `td3` run."""

    def __init__(self, config: TD3Config, task: HybridTask) -> None:
        use_one_torch_thread()
        super().__init__(config, task)
        self.learner = Learner(task.spec, config.policy_delay, generator(config.seed, Purpose.INITIAL))
        self.player = Player(task.environment, task.network, task.head, [0], task.fresh_environments)
        self.seal()

    def evolve(self, parts: Parts) -> Row:
        """Evaluate the actor, then play and learn for one generation."""
        config, progress = self.config, self.progress
        center = evaluate_center(parts, self.task, self.learner.actor.row(), self.generation, config.center_episodes)
        progress.count(center)
        returns: list[float] = []
        lengths: list[int] = []
        before = progress.critic_updates, progress.actor_updates
        for total in self.learner.totals:
            total.zero_()
        while sum(lengths) < config.generation_steps and not self.spent:
            with blas.one_blas_thread():
                rewards = self._episode(parts, len(lengths))
            returns.append(sum(rewards))
            lengths.append(len(rewards))
        losses = self._losses(progress.critic_updates - before[0], progress.actor_updates - before[1])
        return journal_row(config, progress, returns, lengths, center, **losses)

    def _losses(self, *updates: int) -> dict[str, float | None]:
        """The mean losses of a generation with this number of critic and of actor updates."""
        means = [float(total) / count if count else None for total, count in zip(self.learner.totals, updates, strict=True)]
        return dict(zip(("critic_loss", "actor_loss"), means, strict=True))

    def _episode(self, parts: Parts, number: int) -> list[float]:
        """One episode of exploration, with as many updates as steps."""
        config, progress, replay = self.config, self.progress, parts.replay
        where = (self.generation, number)
        act = self._explore(where)
        self.player.become(self.learner.actor.row())
        batches: Batches | None = None
        rewards: list[float] = []
        for (place,) in self.player.play([reset_seed(self.task, Purpose.EPISODE, *where)], act):
            row = place.rows(place.length - 1)
            replay.append(row)
            rewards.append(float(row[0, self.player.layout.reward]))
            progress.training_steps += 1
            if progress.training_steps > self.warm_until and len(rewards) % config.update_every == 0:
                if batches is None:
                    batches = Batches(self.task.spec, replay, learning_key(self.task, Purpose.LEARNING, *where))
                batches.refresh(replay)
                self._learn(batches)
        finite(replay.rows.first(replay.count)[-len(rewards) :])  # what was learned from it is not committed yet
        progress.env_steps += len(rewards)
        progress.episodes += 1
        return rewards

    def _learn(self, batches: Batches) -> None:
        before = self.progress.critic_updates // self.config.policy_delay
        self.learner.train(batches, self.config.update_every)
        self.progress.critic_updates += self.config.update_every
        moved = self.progress.critic_updates // self.config.policy_delay - before
        if moved:
            self.progress.actor_updates += moved
            self.player.become(self.learner.actor.row())

    def _explore(self, where: tuple[int, int]) -> Act:
        """Uniform actions at first, then the actor's with Gaussian noise; both by the episode's address."""
        config, head = self.config, self.player.head
        rng = generator(config.seed, Purpose.EXPLORATION, *where)
        half = (head.high - head.low) / 2
        uniform = self.player.random(reset_seed(self.task, Purpose.WARM_UP, *where))

        def act(seen: np.ndarray) -> np.ndarray:
            if self.progress.training_steps < self.warm_until:
                return uniform(seen)
            noise = rng.standard_normal(head.low.shape, dtype=np.float32) * half * np.float32(config.exploration_noise)
            return np.clip(self.player.act(seen) + noise, head.low, head.high)

        return act

    def arrays(self) -> Arrays:
        """Actor, critics, targets and optimizers."""
        return self.learner.state()

    def load(self, arrays: Arrays, values: dict[str, Any]) -> None:
        """Continue from `arrays`."""
        self.learner.load(arrays)


def workers(config: TD3Config) -> Workers:
    """One process plays and learns; workers only evaluate."""
    return Workers(config.workers or (1 if config.engine == "ray" else 0), learns_in_loop=True)


TD3 = hybrid("td3", TD3Config, TD3Run, workers)
