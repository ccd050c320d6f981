"""TD3 (Fujimoto et al. 2018) as parts: twin critics, an actor that climbs them, and the whole baseline learner."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from esker.learners.batches import Batches, Bursts, Source, Tick, compiled
from esker.learners.networks import FlatMLP, StackedMLP, initial, stacked
from esker.learners.optimizer import MOMENTS, Arrays, adam, moments, reset, restore, step, to_array
from esker.learners.spec import LearnerSpec
from esker.noise.directions import Vector


def critic_network(spec: LearnerSpec) -> StackedMLP:
    """Two critics side by side."""
    return StackedMLP(spec.critic_sizes, spec.critic_activation, spec.device)


def actor_network(spec: LearnerSpec, row: Vector | None = None) -> FlatMLP:
    """One actor; its action is centre + half-width · tanh(output)."""
    network = FlatMLP(spec.actor_sizes, spec.actor_activation, spec.device)
    if row is not None:
        network.flat.copy_(torch.from_numpy(np.array(row)))
    return network


def initial_actor(spec: LearnerSpec, rng: np.random.Generator) -> Vector:
    """Initial parameters of an actor."""
    return initial(spec.actor_sizes, rng)


class Bounds:
    """The action bounds on the learner's device."""

    def __init__(self, spec: LearnerSpec) -> None:
        self.low = torch.tensor(spec.low, device=spec.device)
        self.high = torch.tensor(spec.high, device=spec.device)
        self.half = (self.high - self.low) / 2
        self.center = (self.high + self.low) / 2

    def actions(self, outputs: torch.Tensor) -> torch.Tensor:
        """Network outputs squashed between the bounds."""
        return torch.addcmul(self.center, self.half, torch.tanh(outputs))


class Critics:
    """Twin critics with their targets and optimizer."""

    def __init__(self, spec: LearnerSpec, rng: np.random.Generator) -> None:
        self.spec = spec
        self.bounds = Bounds(spec)
        self.online, self.target = critic_network(spec), critic_network(spec)
        rows = [initial(spec.critic_sizes, rng) for _ in range(2)]
        for network in (self.online, self.target):
            network.flat.copy_(torch.from_numpy(stacked(rows, spec.critic_sizes)))
        self.optimizer = adam(self.online, spec)
        self.updates = 0
        self.total_loss = torch.zeros((), device=spec.device)
        self._bootstrap = actor_network(spec)
        self._loss = compiled(self._plain_loss, spec)
        self._burst = Bursts(spec, lambda source: self.update(source.draw(), self._bootstrap, source.noise()), self)

    def update(self, batch: torch.Tensor, bootstrap: FlatMLP, noise: torch.Tensor) -> torch.Tensor:
        """One step on both critics towards r + γ·min Q'(s', π(s') + clipped noise); returns the loss."""
        loss = self._loss(batch, bootstrap, noise)
        step(self.optimizer, self.online, loss)
        with torch.no_grad():
            self.target.flat.lerp_(self.online.flat, self.spec.tau)
            self.total_loss += loss
        self.updates += 1
        return loss.detach()

    def _plain_loss(self, batch: torch.Tensor, bootstrap: FlatMLP, noise: torch.Tensor) -> torch.Tensor:
        goal = self._goal(batch, bootstrap, noise)
        values = self.online(batch[:, : self.spec.layout.reward])
        return (values - goal).square().mean(dim=(1, 2)).sum()

    @torch.no_grad()
    def _goal(self, batch: torch.Tensor, bootstrap: FlatMLP, noise: torch.Tensor) -> torch.Tensor:
        spec, bounds, at = self.spec, self.bounds, self.spec.layout.reward
        observations = batch[:, at + 1 : -1]
        smoothing = (noise * spec.policy_noise).clamp_(-spec.noise_clip, spec.noise_clip).mul_(bounds.half)
        actions = (bounds.actions(bootstrap(observations)) + smoothing).clamp_(bounds.low, bounds.high)
        values = self.target(torch.cat([observations, actions], dim=1)).amin(dim=0)
        return torch.addcmul(batch[:, at : at + 1], batch[:, -1:], values, value=spec.discount)

    def train(self, batches: Batches, bootstrap: FlatMLP, updates: int, tick: Tick) -> float:
        """Run `updates` updates with one bootstrap actor; returns their mean loss."""
        self._bootstrap.flat.copy_(bootstrap.flat)
        self.total_loss.zero_()
        self._burst.run(batches, updates, tick)
        return float(self.total_loss) / max(updates, 1)

    @property
    def totals(self) -> tuple[torch.Tensor, ...]:
        """The sum of the losses."""
        return (self.total_loss,)

    def state(self) -> Arrays:
        """Everything that moves, as arrays."""
        return {
            "critic": to_array(self.online.flat),
            "critic_target": to_array(self.target.flat),
            **{f"critic_optimizer.{name}": value for name, value in moments(self.optimizer, self.online).items()},
            "critic_updates": np.array([self.updates]),
        }

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from `state`."""
        self.online.flat.copy_(torch.from_numpy(np.array(arrays["critic"])))
        self.target.flat.copy_(torch.from_numpy(np.array(arrays["critic_target"])))
        restore(self.optimizer, self.online, {name: arrays[f"critic_optimizer.{name}"] for name in MOMENTS})
        self.updates = int(arrays["critic_updates"][0])


class Actor:
    """An actor under training: climbs the first critic."""

    def __init__(self, spec: LearnerSpec) -> None:
        self.spec = spec
        self.bounds = Bounds(spec)
        self.network = actor_network(spec)
        self.optimizer = adam(self.network, spec)
        self.total_loss = torch.zeros((), device=spec.device)
        self._critic = critic_network(spec)
        self._loss = compiled(self._plain_loss, spec)
        self._burst = Bursts(spec, lambda source: self.update(source.draw(), self._critic), self)

    def begin(self, row: Vector) -> None:
        """Take over parameters, with a fresh optimizer."""
        self.network.flat.copy_(torch.from_numpy(np.array(row)))
        reset(self.optimizer)

    def update(self, batch: torch.Tensor, critic: StackedMLP) -> None:
        """One step up the mean of Q₁(s, π(s))."""
        loss = self._loss(batch, critic)
        step(self.optimizer, self.network, loss)
        self.total_loss += loss.detach()

    def _plain_loss(self, batch: torch.Tensor, critic: StackedMLP) -> torch.Tensor:
        observations = batch[:, : self.spec.layout.observation]
        actions = self.bounds.actions(self.network(observations))
        return -critic.frozen_first(torch.cat([observations, actions], dim=1)).mean()

    def train(self, batches: Batches, critic: StackedMLP, updates: int, tick: Tick) -> float:
        """Run `updates` updates on one critic; returns their mean loss."""
        self._critic.flat.copy_(critic.flat)
        self.total_loss.zero_()
        self._burst.run(batches, updates, tick)
        return float(self.total_loss) / max(updates, 1)

    def row(self) -> Vector:
        """The parameters, as workers run them."""
        return to_array(self.network.flat)

    @property
    def totals(self) -> tuple[torch.Tensor, ...]:
        """The sum of the losses."""
        return (self.total_loss,)

    def state(self) -> Arrays:
        """Parameters and optimizer."""
        saved = moments(self.optimizer, self.network)
        return {"center": self.row(), **{f"actor_optimizer.{name}": value for name, value in saved.items()}}

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from `state`."""
        self.network.flat.copy_(torch.from_numpy(np.array(arrays["center"])))
        restore(self.optimizer, self.network, {name: arrays[f"actor_optimizer.{name}"] for name in MOMENTS})


class TD3:
    """The baseline: actor, critics and their targets; the actor moves every `delay` critic updates."""

    def __init__(self, spec: LearnerSpec, delay: int, rng: np.random.Generator) -> None:
        self.spec = spec
        self.delay = delay
        self.actor = Actor(spec)
        self.actor.begin(initial_actor(spec, rng))
        self.actor_target = actor_network(spec)
        self.actor_target.flat.copy_(self.actor.network.flat)
        self.critics = Critics(spec, rng)
        self._burst = Bursts(spec, self.update, self, delay)

    def update(self, source: Source) -> None:
        """One update: the critics, and with the delay the actor and its target."""
        batch = source.draw()
        self.critics.update(batch, self.actor_target, source.noise())
        if self.critics.updates % self.delay == 0:
            self.actor.update(batch, self.critics.online)
            self.actor_target.flat.lerp_(self.actor.network.flat, self.spec.tau)

    def train(self, batches: Batches, updates: int) -> None:
        """Run `updates` updates; their losses are added to the totals."""
        self._burst.run(batches, updates, lambda: None)

    @property
    def totals(self) -> tuple[torch.Tensor, ...]:
        """The sums of the critics' and of the actor's losses."""
        return self.critics.total_loss, self.actor.total_loss

    def state(self) -> Arrays:
        """Everything that moves, as arrays; `center` is the actor."""
        return {**self.actor.state(), "actor_target": to_array(self.actor_target.flat), **self.critics.state()}

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from `state`."""
        self.actor.load(arrays)
        self.actor_target.flat.copy_(torch.from_numpy(np.array(arrays["actor_target"])))
        self.critics.load(arrays)
