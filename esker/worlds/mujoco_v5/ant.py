"""Ant: forward velocity and health, minus the costs of control and of contact forces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from esker.worlds.arrays import Array
from esker.worlds.mujoco_v5.definition import Range, Scene, State, Vector, normal_start, write_coordinates


@dataclass(frozen=True)
class Ant:
    """Gymnasium's Ant-v5."""

    scene: Scene
    xml_file: str = "ant.xml"
    frame_skip: int = 5
    forward_reward_weight: float = 1
    ctrl_cost_weight: float = 0.5
    contact_cost_weight: float = 5e-4
    healthy_reward: float = 1.0
    main_body: int | str = 1
    terminate_when_unhealthy: bool = True
    healthy_z_range: Range = (0.2, 1.0)
    contact_force_range: Range = (-1.0, 1.0)
    reset_noise_scale: float = 0.1
    exclude_current_positions_from_observation: bool = True
    include_cfrc_ext_in_observation: bool = True
    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "xpos", "cfrc_ext")
    contact_forces: ClassVar[bool] = True

    @property
    def observation_size(self) -> int:
        model = self.scene.model
        forces = 6 * (model.nbody - 1) if self.include_cfrc_ext_in_observation else 0
        return int(model.nq + model.nv - self._skipped + forces)

    @property
    def _skipped(self) -> int:
        return 2 if self.exclude_current_positions_from_observation else 0

    @cached_property
    def _body(self) -> int:
        return self.scene.body(self.main_body)

    def _forces(self, state: State) -> Array:
        return self.scene.arrays.clip(state.cfrc_ext, *self.contact_force_range)

    def observe(self, state: State, out: Array) -> None:
        write_coordinates(state, out, self._skipped)
        if self.include_cfrc_ext_in_observation:
            first = state.qpos.shape[1] + state.qvel.shape[1] - self._skipped
            out[:, first:] = self._forces(state)[:, 1:].reshape(len(out), -1)

    def position(self, state: State) -> Array:
        return state.xpos[:, self._body, 0]

    def outcome(self, state: State, actions: Array, before: Array, after: Array) -> tuple[Array, Array | None]:
        arrays = self.scene.arrays
        (low, high), z = self.healthy_z_range, state.qpos[:, 2]
        healthy = arrays.all_finite(state.qpos) & arrays.all_finite(state.qvel) & (low <= z) & (z <= high)
        rewards = ((after - before) / self.scene.dt) * self.forward_reward_weight + healthy * self.healthy_reward
        control = self.ctrl_cost_weight * arrays.sum(arrays.square(actions))
        contact = self.contact_cost_weight * arrays.sum(arrays.square(self._forces(state)))
        return rewards - (control + contact), ~healthy if self.terminate_when_unhealthy else None

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        return normal_start(self.scene, random, self.reset_noise_scale)
