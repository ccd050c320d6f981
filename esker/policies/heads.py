"""Action heads: network outputs to actions, for Discrete, MultiDiscrete, MultiBinary and Box spaces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import gymnasium as gym
import numpy as np

from esker.errors import UsageError
from esker.policies.network import Batch
from esker.policies.observations import shown

Actions = Any  # a sequence with one action a row: a list or an array
ActionMode = Literal["direct", "tanh", "binned"]


class Head(Protocol):
    """Turns n rows of outputs into n actions."""

    @property
    def outputs(self) -> int: ...

    def __call__(self, outputs: Batch, noise: Batch | None = None) -> Actions: ...


@dataclass(frozen=True)
class DiscreteHead:
    """The largest output wins."""

    outputs: int
    start: int = 0

    def __call__(self, outputs: Batch, noise: Batch | None = None) -> Actions:
        actions = outputs.argmax(axis=1)
        if self.start:
            actions += self.start
        return actions.tolist()


@dataclass(frozen=True)
class MultiDiscreteHead:
    """The largest output of each group wins."""

    choices: tuple[int, ...]
    start: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def outputs(self) -> int:
        return sum(self.choices)

    def __call__(self, outputs: Batch, noise: Batch | None = None) -> Actions:
        ends = np.cumsum(self.choices)
        groups = [outputs[:, end - n : end].argmax(axis=1) for end, n in zip(ends, self.choices, strict=True)]
        return (np.stack(groups, axis=1) + np.array(self.start)).reshape(-1, *self.shape)


@dataclass(frozen=True)
class MultiBinaryHead:
    """A positive output is a one."""

    shape: tuple[int, ...]

    @property
    def outputs(self) -> int:
        return int(np.prod(self.shape))

    def __call__(self, outputs: Batch, noise: Batch | None = None) -> Actions:
        return (outputs > 0).astype(np.int8).reshape(-1, *self.shape)


@dataclass(frozen=True)
class BoxHead:
    """Continuous actions: outputs clipped to the bounds, squashed by tanh between them, or chosen from bins."""

    low: Batch
    high: Batch
    mode: ActionMode = "direct"
    bins: int = 10

    @property
    def size(self) -> int:
        return int(self.low.size)

    @property
    def outputs(self) -> int:
        return self.size * (self.bins if self.mode == "binned" else 1)

    @cached_property
    def _bounds(self) -> tuple[Batch, Batch]:
        return self.low.reshape(1, -1), self.high.reshape(1, -1)

    @cached_property
    def squash(self) -> tuple[Batch, Batch] | None:
        """Centre and half-width, narrowed so that no rounding of centre ± half-width exceeds a bound.

        None where the bounds are -1 and 1, the range of tanh.
        """
        low, high = self._bounds
        if (low == -1).all() and (high == 1).all():
            return None
        center, half = (low + high) / np.float32(2), (high - low) / np.float32(2)
        while (beyond := (center + half > high) | (center - half < low)).any():
            half = np.where(beyond, np.nextafter(half, np.float32(0)), half)
        return center, half

    def __call__(self, outputs: Batch, noise: Batch | None = None) -> Actions:
        if self.mode == "tanh":
            actions = np.tanh(outputs)
            if self.squash is not None:
                actions = actions * self.squash[1] + self.squash[0]
        elif self.mode == "binned":
            low, high = self._bounds
            chosen = outputs.reshape(len(outputs), self.size, self.bins).argmax(axis=2).astype(np.float32)
            actions = low + chosen * ((high - low) / np.float32(self.bins - 1))
        else:
            actions = outputs
        if noise is not None:
            actions = actions + noise
        if noise is not None or self.mode != "tanh":
            actions = actions.clip(*self._bounds)
        return actions if self.low.ndim == 1 else actions.reshape(-1, *self.low.shape)


def head_for(space: gym.Space[Any], mode: ActionMode = "direct", bins: int = 10) -> Head:
    """The head that fits an action space. Other kinds of space, and modes that do not fit, raise UsageError."""
    if isinstance(space, gym.spaces.Box):
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
        if mode != "direct" and not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise UsageError(f"action mode {mode!r} needs bounded actions, and this Box has none; use --action-mode direct")
        return BoxHead(low, high, mode, bins)
    if mode != "direct":
        raise UsageError(f"action mode {mode!r} is for continuous (Box) actions; this environment has {shown(space)}")
    if isinstance(space, gym.spaces.Discrete):
        return DiscreteHead(int(space.n), int(space.start))
    if isinstance(space, gym.spaces.MultiDiscrete):
        start = tuple(int(value) for value in np.asarray(space.start).reshape(-1))
        return MultiDiscreteHead(tuple(int(n) for n in space.nvec.reshape(-1)), start, space.shape)
    if isinstance(space, gym.spaces.MultiBinary):
        return MultiBinaryHead(space.shape)
    raise UsageError(f"actions of {shown(space)} are not supported; expected Discrete, MultiDiscrete, MultiBinary or Box")


def refuse_whole_numbers(space: gym.Space[Any]) -> None:
    """Outputs are real numbers, which a Box of whole numbers does not contain. Such a one raises UsageError."""
    if isinstance(space, gym.spaces.Box) and not np.issubdtype(space.dtype, np.floating):
        raise UsageError(
            f"actions of {shown(space)} are whole numbers; expected a Box of floats, or MultiDiscrete: wrap the environment"
        )
