"""HalfCheetah, Swimmer, Hopper and Walker2d: forward velocity minus the cost of control, and health where it can be lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from esker.worlds.arrays import Array
from esker.worlds.mujoco_v5.definition import (
    Range,
    Scene,
    State,
    Vector,
    normal_start,
    uniform_start,
    within,
    write_coordinates,
)

Outcome = tuple[Array, Array | None]


@dataclass(frozen=True)
class HalfCheetah:
    """Gymnasium's HalfCheetah-v5."""

    scene: Scene
    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True
    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel")
    contact_forces: ClassVar[bool] = False
    skip: ClassVar[int] = 1  # how many positions are not observed by default

    @property
    def observation_size(self) -> int:
        return self.scene.model.nq + self.scene.model.nv - self._skipped

    @property
    def _skipped(self) -> int:
        return self.skip if self.exclude_current_positions_from_observation else 0

    def observe(self, state: State, out: Array) -> None:
        write_coordinates(state, out, self._skipped)

    def position(self, state: State) -> Array:
        return state.qpos[:, 0]

    def outcome(self, state: State, actions: Array, before: Array, after: Array) -> Outcome:
        arrays = self.scene.arrays
        forward = self.forward_reward_weight * ((after - before) / self.scene.dt)
        return forward - self.ctrl_cost_weight * arrays.sum(arrays.square(actions)), None

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        return normal_start(self.scene, random, self.reset_noise_scale)


@dataclass(frozen=True)
class Swimmer(HalfCheetah):
    """Gymnasium's Swimmer-v5."""

    xml_file: str = "swimmer.xml"
    frame_skip: int = 4
    ctrl_cost_weight: float = 1e-4
    skip: ClassVar[int] = 2

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        return uniform_start(self.scene, random, self.reset_noise_scale)


@dataclass(frozen=True)
class Walker2d:
    """Gymnasium's Walker2d-v5."""

    scene: Scene
    xml_file: str = "walker2d_v5.xml"
    frame_skip: int = 4
    forward_reward_weight: float = 1.0
    ctrl_cost_weight: float = 1e-3
    healthy_reward: float = 1.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: Range = (0.8, 2.0)
    healthy_angle_range: Range = (-1.0, 1.0)
    reset_noise_scale: float = 5e-3
    exclude_current_positions_from_observation: bool = True
    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel")
    contact_forces: ClassVar[bool] = False

    @property
    def observation_size(self) -> int:
        return self.scene.model.nq + self.scene.model.nv - self._skipped

    @property
    def _skipped(self) -> int:
        return 1 if self.exclude_current_positions_from_observation else 0

    def observe(self, state: State, out: Array) -> None:
        count = state.qpos.shape[1] - self._skipped
        out[:, :count] = state.qpos[:, self._skipped :]
        out[:, count:] = self.scene.arrays.clip(state.qvel, -10, 10)

    def position(self, state: State) -> Array:
        return state.qpos[:, 0]

    def healthy(self, state: State) -> Array:
        """Whether a world's body is upright and at its height."""
        return within(state.qpos[:, 1], self.healthy_z_range) & within(state.qpos[:, 2], self.healthy_angle_range)

    def outcome(self, state: State, actions: Array, before: Array, after: Array) -> Outcome:
        arrays = self.scene.arrays
        healthy = self.healthy(state)
        rewards = self.forward_reward_weight * ((after - before) / self.scene.dt) + healthy * self.healthy_reward
        rewards = rewards - self.ctrl_cost_weight * arrays.sum(arrays.square(actions))
        return rewards, ~healthy if self.terminate_when_unhealthy else None

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        return uniform_start(self.scene, random, self.reset_noise_scale)


@dataclass(frozen=True)
class Hopper(Walker2d):
    """Gymnasium's Hopper-v5: unhealthy also where any number of the state is too large."""

    xml_file: str = "hopper.xml"
    healthy_z_range: Range = (0.7, float("inf"))
    healthy_angle_range: Range = (-0.2, 0.2)
    healthy_state_range: Range = (-100.0, 100.0)

    def healthy(self, state: State) -> Array:
        small = [self.scene.arrays.all(within(part, self.healthy_state_range)) for part in (state.qpos[:, 2:], state.qvel)]
        return super().healthy(state) & small[0] & small[1]
