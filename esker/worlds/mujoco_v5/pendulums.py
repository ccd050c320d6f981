"""InvertedPendulum and InvertedDoublePendulum: a cart that keeps poles upright."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from esker.worlds.arrays import Array
from esker.worlds.mujoco_v5.definition import Scene, State, Vector, normal_start, uniform_start, write_coordinates


@dataclass(frozen=True)
class InvertedPendulum:
    """Gymnasium's InvertedPendulum-v5."""

    scene: Scene
    xml_file: str = "inverted_pendulum.xml"
    frame_skip: int = 2
    reset_noise_scale: float = 0.01
    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel")
    contact_forces: ClassVar[bool] = False
    observation_size: ClassVar[int] = 4

    def observe(self, state: State, out: Array) -> None:
        write_coordinates(state, out, 0)

    def position(self, state: State) -> None:
        return None

    def outcome(self, state: State, actions: Array, before: None, after: None) -> tuple[Array, Array]:
        arrays = self.scene.arrays
        finite = arrays.all_finite(state.qpos) & arrays.all_finite(state.qvel)
        terminated = ~finite | (arrays.abs(state.qpos[:, 1]) > 0.2)
        return 1.0 * ~terminated, terminated

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        return uniform_start(self.scene, random, self.reset_noise_scale)


@dataclass(frozen=True)
class InvertedDoublePendulum:
    """Gymnasium's InvertedDoublePendulum-v5."""

    scene: Scene
    xml_file: str = "inverted_double_pendulum.xml"
    frame_skip: int = 5
    healthy_reward: float = 10.0
    reset_noise_scale: float = 0.1
    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "qfrc_constraint", "site_xpos")
    contact_forces: ClassVar[bool] = False
    observation_size: ClassVar[int] = 9

    def observe(self, state: State, out: Array) -> None:
        arrays = self.scene.arrays
        out[:, 0] = state.qpos[:, 0]
        out[:, 1:3] = arrays.sin(state.qpos[:, 1:])
        out[:, 3:5] = arrays.cos(state.qpos[:, 1:])
        out[:, 5:8] = arrays.clip(state.qvel, -10, 10)
        out[:, 8] = arrays.clip(state.qfrc_constraint[:, 0], -10, 10)

    def position(self, state: State) -> None:
        return None

    def outcome(self, state: State, actions: Array, before: None, after: None) -> tuple[Array, Array]:
        power2 = self.scene.arrays.power2
        x, y = state.site_xpos[:, 0, 0], state.site_xpos[:, 0, 2]
        terminated = y <= 1
        distance = 0.01 * power2(x) + power2(y - 2)
        velocity = 1e-3 * power2(state.qvel[:, 1]) + 5e-3 * power2(state.qvel[:, 2])
        return self.healthy_reward * ~terminated - distance - velocity, terminated

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        return normal_start(self.scene, random, self.reset_noise_scale)
