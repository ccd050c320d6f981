"""Several actors trained at once on one critic: every step of all of them is one batched update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from esker.learners.batches import Batches, Bursts, Tick, compiled
from esker.learners.networks import StackedMLP, stacked, unstacked
from esker.learners.optimizer import MOMENTS, Arrays, adam, moments, reset, restore, step, to_array
from esker.learners.replay import Replay
from esker.learners.spec import LearnerSpec
from esker.learners.td3 import Bounds, critic_network
from esker.noise.directions import Vector


class Actors:
    """Several actors under training, each on its own batches; what `Actor` does to one, this does to all."""

    def __init__(self, spec: LearnerSpec, count: int) -> None:
        self.spec = replace(spec, batch=count * spec.batch)  # one draw serves them all
        self.count = count
        self.bounds = Bounds(spec)
        self.network = StackedMLP(spec.actor_sizes, spec.actor_activation, spec.device, count)
        self.optimizer = adam(self.network, spec)
        self.total_loss = torch.zeros((), device=spec.device)
        self._critic = critic_network(spec)
        self._loss = compiled(self._plain_loss, spec)
        self._burst = Bursts(self.spec, lambda source: self.update(source.draw(), self._critic), self)

    def begin(self, rows: Vector) -> None:
        """Take over parameters, with fresh optimizers."""
        self.network.flat.copy_(torch.from_numpy(stacked(list(rows), self.spec.actor_sizes)))
        reset(self.optimizer)

    def update(self, batch: torch.Tensor, critic: StackedMLP) -> None:
        """One step of each actor up the mean of Q₁(s, π(s)) over its part of the batch."""
        loss = self._loss(batch, critic)
        step(self.optimizer, self.network, loss)
        self.total_loss += loss.detach()

    def _plain_loss(self, batch: torch.Tensor, critic: StackedMLP) -> torch.Tensor:
        observations = batch[:, : self.spec.layout.observation]
        actions = self.bounds.actions(self.network(observations.reshape(self.count, -1, observations.shape[1])))
        values = critic.frozen_first(torch.cat([observations, actions.flatten(0, 1)], dim=1))
        return -values.view(self.count, -1).mean(dim=1).sum()

    def train(self, replay: Replay, key: int, critic: StackedMLP, updates: int, tick: Tick) -> float:
        """Run `updates` updates of each actor on one critic; returns their mean loss."""
        self._critic.flat.copy_(critic.flat)
        self.total_loss.zero_()
        self._burst.run(Batches(self.spec, replay, key), updates, tick)
        return float(self.total_loss) / max(updates * self.count, 1)

    @property
    def totals(self) -> tuple[torch.Tensor, ...]:
        """The sum of the losses."""
        return (self.total_loss,)

    def rows(self) -> Vector:
        """The parameters, one actor in each row, as workers run them."""
        return unstacked(to_array(self.network.flat), self.spec.actor_sizes, self.count)

    def state(self) -> Arrays:
        """Parameters and optimizers."""
        return {"actors": to_array(self.network.flat), **moments(self.optimizer, self.network)}

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from `state`."""
        self.network.flat.copy_(torch.from_numpy(np.array(arrays["actors"])))
        restore(self.optimizer, self.network, {name: arrays[name] for name in MOMENTS})
