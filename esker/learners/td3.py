"""TD3 (Fujimoto et al. 2018) as parts: twin critics, an actor that climbs them, and the whole baseline learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch

from esker.learners.networks import FlatMLP, initial, stack
from esker.learners.replay import Replay
from esker.learners.spec import LearnerSpec
from esker.noise import Row

Arrays = dict[str, np.ndarray]
Tick = Callable[[], None]


def critic_network(spec: LearnerSpec) -> FlatMLP:
    """Two critics side by side."""
    return FlatMLP(spec.critic_sizes, spec.critic_activation, 2, spec.device)


def actor_network(spec: LearnerSpec, row: Row | None = None) -> FlatMLP:
    """One actor; its action is centre + half-width · tanh(output)."""
    network = FlatMLP(spec.actor_sizes, spec.actor_activation, 1, spec.device)
    if row is not None:
        network.flat.copy_(torch.from_numpy(np.array(row)))
    return network


def initial_actor(spec: LearnerSpec, rng: np.random.Generator) -> Row:
    """Initial parameters of an actor."""
    return initial(spec.actor_sizes, rng)


class Batches:
    """Batches and smoothing noise for a stretch of updates, decided by one key."""

    def __init__(self, spec: LearnerSpec, replay: Replay, key: int) -> None:
        self.spec = spec
        self.refresh(replay)
        self.random = torch.Generator(device=spec.device).manual_seed(key >> 1)

    def refresh(self, replay: Replay) -> None:
        """Sample from what the buffer holds now."""
        self.rows, self.first, self.end = replay.window()

    def draw(self) -> torch.Tensor:
        """One batch of rows, drawn with replacement."""
        chosen = torch.randint(self.first, self.end, (self.spec.batch,), generator=self.random, device=self.spec.device)
        return self.rows.index_select(0, chosen)

    def noise(self) -> torch.Tensor:
        """Standard normals for the target actions of one batch."""
        shape = (self.spec.batch, self.spec.layout.action)
        return torch.randn(shape, generator=self.random, device=self.spec.device)


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
            network.flat.copy_(torch.from_numpy(stack(rows, spec.critic_sizes)))
        self.optimizer = adam(self.online, spec)
        self.updates = 0

    def update(self, batch: torch.Tensor, bootstrap: FlatMLP, noise: torch.Tensor) -> torch.Tensor:
        """One step on both critics towards r + γ·min Q'(s', π(s') + clipped noise); answers the loss."""
        layout = self.spec.layout
        goal = self._goal(batch, bootstrap, noise)
        values = self.online(batch[:, : layout.reward])
        loss = (values - goal).square().mean(dim=(1, 2)).sum()
        step(self.optimizer, self.online, loss)
        with torch.no_grad():
            self.target.flat.lerp_(self.online.flat, self.spec.tau)
        self.updates += 1
        return loss.detach()

    @torch.no_grad()
    def _goal(self, batch: torch.Tensor, bootstrap: FlatMLP, noise: torch.Tensor) -> torch.Tensor:
        spec, bounds, at = self.spec, self.bounds, self.spec.layout.reward
        observations = batch[:, at + 1 : -1]
        smoothing = (noise * spec.policy_noise).clamp_(-spec.noise_clip, spec.noise_clip).mul_(bounds.half)
        actions = (bounds.actions(bootstrap(observations)[0]) + smoothing).clamp_(bounds.low, bounds.high)
        values = self.target(torch.cat([observations, actions], dim=1)).amin(dim=0)
        return torch.addcmul(batch[:, at : at + 1], batch[:, -1:], values, value=spec.discount)

    def train(self, batches: Batches, bootstrap: FlatMLP, updates: int, tick: Tick) -> float:
        """So many updates with one bootstrap actor; answers the mean loss."""
        total = torch.zeros((), device=self.spec.device)
        for _ in range(updates):
            total += self.update(batches.draw(), bootstrap, batches.noise())
            tick()
        return float(total) / max(updates, 1)

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
        restore(self.optimizer, self.online, {n: arrays[f"critic_optimizer.{n}"] for n in ("step", "exp_avg", "exp_avg_sq")})
        self.updates = int(arrays["critic_updates"][0])


class Actor:
    """An actor under training: climbs the first critic."""

    def __init__(self, spec: LearnerSpec) -> None:
        self.spec = spec
        self.bounds = Bounds(spec)
        self.network = actor_network(spec)
        self.optimizer = adam(self.network, spec)

    def begin(self, row: Row) -> None:
        """Take parameters on, with a fresh optimizer."""
        self.network.flat.copy_(torch.from_numpy(np.array(row)))
        self.optimizer.state.clear()

    def update(self, batch: torch.Tensor, critic: FlatMLP) -> None:
        """One step up the mean of Q₁(s, π(s))."""
        observations = batch[:, : self.spec.layout.observation]
        actions = self.bounds.actions(self.network(observations)[0])
        loss = -critic.frozen_first(torch.cat([observations, actions], dim=1)).mean()
        step(self.optimizer, self.network, loss)

    def train(self, batches: Batches, critic: FlatMLP, updates: int, tick: Tick) -> None:
        """So many updates on one critic."""
        for _ in range(updates):
            self.update(batches.draw(), critic)
            tick()

    def row(self) -> Row:
        """The parameters, as workers run them."""
        return to_array(self.network.flat)


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

    def update(self, batches: Batches) -> None:
        """One update: the critics, and with the delay the actor and its target."""
        batch = batches.draw()
        self.critics.update(batch, self.actor_target, batches.noise())
        if self.critics.updates % self.delay == 0:
            self.actor.update(batch, self.critics.online)
            self.actor_target.flat.lerp_(self.actor.network.flat, self.spec.tau)

    def train(self, batches: Batches, updates: int) -> None:
        """So many updates."""
        for _ in range(updates):
            self.update(batches)

    def state(self) -> Arrays:
        """Everything that moves, as arrays; `center` is the actor."""
        return {
            "center": self.actor.row(),
            "actor_target": to_array(self.actor_target.flat),
            **{f"actor_optimizer.{n}": v for n, v in moments(self.actor.optimizer, self.actor.network).items()},
            **self.critics.state(),
        }

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from `state`."""
        self.actor.begin(arrays["center"])
        saved = {n: arrays[f"actor_optimizer.{n}"] for n in ("step", "exp_avg", "exp_avg_sq")}
        restore(self.actor.optimizer, self.actor.network, saved)
        self.actor_target.flat.copy_(torch.from_numpy(np.array(arrays["actor_target"])))
        self.critics.load(arrays)


def adam(network: FlatMLP, spec: LearnerSpec) -> torch.optim.Adam:
    """Adam in one fused kernel, fit for capture in a CUDA graph."""
    return torch.optim.Adam(network.parameters, lr=spec.lr, fused=True, capturable=spec.device != "cpu")


def step(optimizer: torch.optim.Adam, network: FlatMLP, loss: torch.Tensor) -> None:
    """One optimizer step down a loss."""
    for parameter, gradient in zip(network.parameters, torch.autograd.grad(loss, network.parameters), strict=True):
        parameter.grad = gradient
    optimizer.step()


def moments(optimizer: torch.optim.Adam, network: FlatMLP) -> Arrays:
    """Adam's state as flat arrays, zero where it has not begun."""
    states = [optimizer.state.get(parameter, {}) for parameter in network.parameters]
    flat = {
        name: np.concatenate(
            [
                to_array(state[name]).reshape(-1) if name in state else np.zeros(p.numel(), dtype=np.float32)
                for state, p in zip(states, network.parameters, strict=True)
            ]
        )
        for name in ("exp_avg", "exp_avg_sq")
    }
    return {"step": np.array([float(states[0].get("step", 0.0))]), **flat}


def restore(optimizer: torch.optim.Adam, network: FlatMLP, arrays: Mapping[str, np.ndarray]) -> None:
    """Put Adam's state back."""
    optimizer.state.clear()
    done = float(arrays["step"][0])
    if not done:
        return
    at = 0
    for parameter in network.parameters:
        part = slice(at, at + parameter.numel())
        optimizer.state[parameter] = {
            "step": torch.tensor(done, device=parameter.device),
            **{
                name: torch.from_numpy(np.array(arrays[name][part])).view(parameter.shape).to(parameter.device)
                for name in ("exp_avg", "exp_avg_sq")
            },
        }
        at += parameter.numel()


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """A copy of a tensor as an array."""
    return tensor.detach().cpu().numpy().copy()
