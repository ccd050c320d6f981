"""The hybrids' task: rolls individuals out, trains actors and critics; shipped to every worker once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from esker.learners.rows import SharedRows
from esker.learners.spec import LearnerSpec
from esker.noise.address import Purpose, generator
from esker.policies.heads import BoxHead
from esker.policies.mlp import MLP
from esker.tasks.requests import CriticDone, CriticWork, Failed, Reply, Request, Training, Trial, TrialResult
from esker.tasks.rollouts import Board, Player, what_failed
from esker.worlds.environments import Environment

if TYPE_CHECKING:
    from esker.learners.actors import Actors
    from esker.learners.replay import Replay
    from esker.learners.td3 import Actor, Critics


@dataclass(frozen=True)
class HybridTask:
    """Environment, actor and learner of a run."""

    environment: Environment
    network: MLP
    head: BoxHead
    spec: LearnerSpec
    seed: int
    replay_size: int
    fresh_environments: bool = False
    replay_begin: int = 0  # transitions of the run before the first that the replay has: a resume without a replay file

    def open(self, rows: SharedRows, board: Board) -> HybridWorker:
        """The task in one process, with the run's replay memory."""
        return HybridWorker(self, rows, board)


class HybridWorker:
    """A task opened in one process; what trains is built when first used, so that others stay light."""

    def __init__(self, task: HybridTask, rows: SharedRows | None, board: Board) -> None:
        self.task = task
        self.board = board
        self.player = Player(task.environment, task.network, task.head, board, task.fresh_environments)
        self.rows = rows
        self._replay: Replay | None = None
        self._actor: Actor | None = None
        self._actors: Actors | None = None
        self._critics: Critics | None = None

    def handle(self, request: Request) -> Reply:
        """Handle a request; a failure is returned, not raised."""
        try:
            return self._try(request) if isinstance(request, Trial) else self.train_critic(request)
        except (Exception, SystemExit) as error:
            return Failed(*what_failed(error))

    @property
    def replay(self) -> Replay:
        """The run's replay buffer, as this process sees it."""
        if self._replay is None:
            assert self.rows is not None
            from esker.learners.replay import Replay

            self._replay = Replay(self.rows, self.task.replay_size, self.task.spec.device, self.task.replay_begin)
        return self._replay

    @property
    def critics(self) -> Critics:
        """The critics of this process, as they begin."""
        if self._critics is None:
            from esker.learners.td3 import Critics

            use_one_torch_thread()
            self._critics = Critics(self.task.spec, generator(self.task.seed, Purpose.INITIAL, 1))
        return self._critics

    def _try(self, trial: Trial) -> TrialResult:
        episodes, loss = trial.episodes, None
        if trial.training is not None:
            assert episodes.parameters is not None
            trained, loss = self.improve(episodes.parameters, trial.training)
            episodes = replace(episodes, parameters=trained)
        return TrialResult(episodes.parameters, *self.player.run(episodes), loss)

    def improve(self, parameters: np.ndarray, training: Training) -> tuple[np.ndarray, float]:
        """Train an actor on a frozen critic; returns its parameters and its mean loss."""
        import torch

        from esker.learners.batches import Batches
        from esker.learners.td3 import Actor, critic_network

        use_one_torch_thread()
        self._actor = self._actor or Actor(self.task.spec)
        actor, critic = self._actor, critic_network(self.task.spec)
        critic.flat.copy_(torch.from_numpy(np.array(training.critic)))
        self.replay.see(training.replay_count)
        batches = Batches(self.task.spec, self.replay, training.key)
        actor.begin(parameters)
        loss = actor.train(batches, critic, training.updates, self._tick)
        return actor.row(), loss

    def improve_together(self, rows: np.ndarray, training: Training) -> tuple[np.ndarray, float]:
        """Train several actors on a frozen critic, in batched updates; returns their parameters and the mean loss."""
        import torch

        from esker.learners.actors import Actors
        from esker.learners.td3 import critic_network

        use_one_torch_thread()
        if self._actors is None or self._actors.count != len(rows):
            self._actors = Actors(self.task.spec, len(rows))
        critic = critic_network(self.task.spec)
        critic.flat.copy_(torch.from_numpy(np.array(training.critic)))
        self.replay.see(training.replay_count)
        self._actors.begin(rows)
        loss = self._actors.train(self.replay, training.key, critic, training.updates, self._tick)
        return self._actors.rows(), loss

    def train_critic(self, work: CriticWork) -> CriticDone:
        """Train this process's critics."""
        from esker.learners.batches import Batches
        from esker.learners.td3 import actor_network

        critics = self.critics
        critics.load(work.state)
        bootstrap = actor_network(self.task.spec, work.actor)
        self.replay.see(work.replay_count)
        batches = Batches(self.task.spec, self.replay, work.key)
        loss = critics.train(batches, bootstrap, work.updates, self._tick)
        return CriticDone(critics.state(), loss)

    def _tick(self) -> None:
        self.board[0] += 1

    def close(self) -> None:
        """Close the environment."""
        self.player.close()


def use_one_torch_thread() -> None:
    """One torch thread: processes share the cores, and sums keep their bits."""
    import torch

    torch.set_num_threads(1)
