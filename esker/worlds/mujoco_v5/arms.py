"""Reacher and Pusher: an arm and a goal; the reward is the distance, negated, minus the cost of control."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from esker.worlds.arrays import Array
from esker.worlds.mujoco_v5.definition import Scene, State, Vector


@dataclass(frozen=True)
class Reacher:
    """Gymnasium's Reacher-v5."""

    scene: Scene
    xml_file: str = "reacher.xml"
    frame_skip: int = 2
    reward_dist_weight: float = 1
    reward_control_weight: float = 1
    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "xpos")
    contact_forces: ClassVar[bool] = False
    observation_size: ClassVar[int] = 10

    @cached_property
    def _bodies(self) -> tuple[int, int]:
        return self.scene.body("fingertip"), self.scene.body("target")

    def _way(self, state: State) -> Array:
        fingertip, target = self._bodies
        return state.xpos[:, fingertip] - state.xpos[:, target]

    def observe(self, state: State, out: Array) -> None:
        arrays = self.scene.arrays
        out[:, 0:2] = arrays.cos(state.qpos[:, :2])
        out[:, 2:4] = arrays.sin(state.qpos[:, :2])
        out[:, 4:6] = state.qpos[:, 2:]
        out[:, 6:8] = state.qvel[:, :2]
        out[:, 8:10] = self._way(state)[:, :2]

    def position(self, state: State) -> None:
        return None

    def outcome(self, state: State, actions: Array, before: None, after: None) -> tuple[Array, None]:
        arrays = self.scene.arrays
        distance = -arrays.norm(self._way(state)) * self.reward_dist_weight
        return distance + -arrays.sum(arrays.square(actions)) * self.reward_control_weight, None

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        qpos = random.uniform(low=-0.1, high=0.1, size=self.scene.model.nq) + self.scene.qpos
        while np.linalg.norm(goal := random.uniform(low=-0.2, high=0.2, size=2)) >= 0.2:
            pass
        qpos[-2:] = goal
        qvel = self.scene.qvel + random.uniform(low=-0.005, high=0.005, size=self.scene.model.nv)
        qvel[-2:] = 0
        return qpos, qvel


@dataclass(frozen=True)
class Pusher:
    """Gymnasium's Pusher-v5."""

    scene: Scene
    xml_file: str = "pusher_v5.xml"
    frame_skip: int = 5
    reward_near_weight: float = 0.5
    reward_dist_weight: float = 1
    reward_control_weight: float = 0.1
    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "xpos")
    contact_forces: ClassVar[bool] = False
    observation_size: ClassVar[int] = 23

    @cached_property
    def _bodies(self) -> tuple[int, ...]:
        return tuple(self.scene.body(name) for name in ("tips_arm", "object", "goal"))

    def observe(self, state: State, out: Array) -> None:
        out[:, 0:7] = state.qpos[:, :7]
        out[:, 7:14] = state.qvel[:, :7]
        for number, body in enumerate(self._bodies):
            out[:, 14 + 3 * number : 17 + 3 * number] = state.xpos[:, body]

    def position(self, state: State) -> None:
        return None

    def outcome(self, state: State, actions: Array, before: None, after: None) -> tuple[Array, None]:
        arrays = self.scene.arrays
        tip, thing, goal = (state.xpos[:, body] for body in self._bodies)
        near = -arrays.norm(thing - tip) * self.reward_near_weight
        distance = -arrays.norm(thing - goal) * self.reward_dist_weight
        control = -arrays.sum(arrays.square(actions)) * self.reward_control_weight
        return distance + control + near, None

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        qpos = self.scene.qpos.copy()
        while True:
            place = [random.uniform(low=-0.3, high=0, size=1)[0], random.uniform(low=-0.2, high=0.2, size=1)[0]]
            if np.linalg.norm(place) > 0.17:
                break
        qpos[-4:-2] = place
        qpos[-2:] = 0
        qvel = self.scene.qvel + random.uniform(low=-0.005, high=0.005, size=self.scene.model.nv)
        qvel[-4:] = 0
        return qpos, qvel
