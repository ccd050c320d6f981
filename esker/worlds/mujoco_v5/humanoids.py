"""Humanoid and HumanoidStandup: observations of inertia, velocity, actuators and contacts besides the coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from esker.worlds.arrays import Array
from esker.worlds.mujoco_v5.definition import Range, Scene, State, Vector, uniform_start, within, write_coordinates


@dataclass(frozen=True)
class Observed:
    """What the two humanoids have in common: the observation and the start."""

    scene: Scene
    xml_file: str = "humanoid.xml"
    frame_skip: int = 5
    ctrl_cost_weight: float = 0.1
    reset_noise_scale: float = 1e-2
    exclude_current_positions_from_observation: bool = True
    include_cinert_in_observation: bool = True
    include_cvel_in_observation: bool = True
    include_qfrc_actuator_in_observation: bool = True
    include_cfrc_ext_in_observation: bool = True
    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "cinert", "cvel", "qfrc_actuator", "cfrc_ext", "ctrl")
    contact_forces: ClassVar[bool] = True

    @property
    def _skipped(self) -> int:
        return 2 if self.exclude_current_positions_from_observation else 0

    @cached_property
    def _parts(self) -> list[tuple[str, int, slice]]:
        """Name of an array, the first of its entries that is observed, and its place in the observation."""
        model = self.scene.model
        wanted = [
            (self.include_cinert_in_observation, "cinert", 1, 10 * (model.nbody - 1)),
            (self.include_cvel_in_observation, "cvel", 1, 6 * (model.nbody - 1)),
            (self.include_qfrc_actuator_in_observation, "qfrc_actuator", 6, model.nv - 6),
            (self.include_cfrc_ext_in_observation, "cfrc_ext", 1, 6 * (model.nbody - 1)),
        ]
        at, parts = model.nq + model.nv - self._skipped, []
        for included, name, first, size in wanted:
            if included:
                parts.append((name, first, slice(at, at + size)))
                at += size
        return parts

    @property
    def observation_size(self) -> int:
        model = self.scene.model
        return int(self._parts[-1][2].stop if self._parts else model.nq + model.nv - self._skipped)

    def observe(self, state: State, out: Array) -> None:
        write_coordinates(state, out, self._skipped)
        for name, first, place in self._parts:
            out[:, place] = getattr(state, name)[:, first:].reshape(len(out), -1)

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        return uniform_start(self.scene, random, self.reset_noise_scale)


@dataclass(frozen=True)
class Humanoid(Observed):
    """Gymnasium's Humanoid-v5."""

    forward_reward_weight: float = 1.25
    contact_cost_weight: float = 5e-7
    contact_cost_range: Range = (-np.inf, 10.0)
    healthy_reward: float = 5.0
    terminate_when_unhealthy: bool = True
    healthy_z_range: Range = (1.0, 2.0)
    reads: ClassVar[tuple[str, ...]] = (*Observed.reads, "xipos")

    @cached_property
    def _masses(self) -> tuple[Array, float]:
        masses = self.scene.model.body_mass
        return self.scene.arrays.constant(masses), float(masses.sum())

    def position(self, state: State) -> Array:
        masses, total = self._masses
        return (self.scene.arrays.weighted_sum(masses, state.xipos) / total)[:, 0]  # of the centre of mass

    def outcome(self, state: State, actions: Array, before: Array, after: Array) -> tuple[Array, Array | None]:
        arrays = self.scene.arrays
        healthy = within(state.qpos[:, 2], self.healthy_z_range)
        rewards = self.forward_reward_weight * ((after - before) / self.scene.dt) + healthy * self.healthy_reward
        control = self.ctrl_cost_weight * arrays.sum(arrays.square(state.ctrl))
        contact = self.contact_cost_weight * arrays.sum(arrays.square(state.cfrc_ext))
        costs = control + arrays.clip(contact, *self.contact_cost_range)
        return rewards - costs, ~healthy if self.terminate_when_unhealthy else None


@dataclass(frozen=True)
class HumanoidStandup(Observed):
    """Gymnasium's HumanoidStandup-v5."""

    xml_file: str = "humanoidstandup.xml"
    uph_cost_weight: float = 1  # documented by Gymnasium, and read by nothing
    impact_cost_weight: float = 0.5e-6
    impact_cost_range: Range = (-np.inf, 10.0)

    def position(self, state: State) -> None:
        return None

    def outcome(self, state: State, actions: Array, before: None, after: None) -> tuple[Array, Array | None]:
        arrays = self.scene.arrays
        upward = (state.qpos[:, 2] - 0) / self.scene.timestep
        control = self.ctrl_cost_weight * arrays.sum(arrays.square(state.ctrl))
        impact = self.impact_cost_weight * arrays.sum(arrays.square(state.cfrc_ext))
        return upward - control - arrays.clip(impact, *self.impact_cost_range) + 1, None
