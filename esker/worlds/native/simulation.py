"""Native worlds: MuJoCo steps the physics of each row, one formula for all rows makes observations and rewards of it.

What Gymnasium's class does in Python for every step of every environment is done once for all rows of a worker, and to
the same bits: the same calls of MuJoCo in the same order, the formulas of `mujoco_v5`, the same random numbers at a reset.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
from gymnasium.utils import seeding

from esker.worlds.mujoco_v5 import define
from esker.worlds.native.profiler import profiler_clock
from esker.worlds.worlds import Ended


class NativeWorlds:
    """The MuJoCo worlds of one worker. One model serves all rows; each row has its own MjData."""

    def __init__(self, name: str, options: dict[str, Any], rows: int, limit: int | None) -> None:
        self.definition = define(name, options)
        self.limit = limit
        self.model = self.definition.scene.model
        self.frame_skip = self.definition.frame_skip
        self.clock = profiler_clock()
        self.datas: list[mujoco.MjData] = []
        shapes = {field: getattr(mujoco.MjData(self.model), field).shape for field in self.definition.reads}
        self.arrays = {field: np.zeros((rows, *shape)) for field, shape in shapes.items()}
        self.before = np.zeros(rows)  # the positions from which velocities are measured
        self.first = np.zeros((1, self.definition.observation_size))
        self._states: dict[tuple[int, int], SimpleNamespace] = {}
        # Of each row: the world, its control, and where its arrays are copied to and from.
        self.moving: list[tuple[mujoco.MjData, Any, list[tuple[Any, Any]]]] = []

    def reset(self, row: int, seed: int) -> Any:
        """Begin an episode with the start that Gymnasium draws from this seed."""
        if row == len(self.datas):
            self.datas.append(mujoco.MjData(self.model))
            self.moving.append(self._moving(row))
        data = self.datas[row]
        mujoco.mj_resetData(self.model, data)
        data.qpos[:], data.qvel[:] = self.definition.start(seeding.np_random(seed)[0])
        mujoco.mj_forward(self.model, data)
        self._copy(self.moving[row][2])
        state = self._state(row, row + 1)
        position = self.definition.position(state)
        if position is not None:
            self.before[row] = position[0]
        self.definition.observe(state, self.first)
        return self.first[0].copy()

    def step(self, actions: Any, count: int, observations: Any) -> tuple[list[float], list[Ended]]:
        """One step of each row; `info` is not produced."""
        installed, self.clock.value = self.clock.value, None
        try:
            self._move(actions)
        finally:
            self.clock.value = installed
        state, before = self._state(0, count), self.before[:count]
        after = self.definition.position(state)
        rewards, terminated = self.definition.outcome(state, actions, before, after)
        if after is not None:
            before[:] = after
        self.definition.observe(state, observations[:count])
        ended = [] if terminated is None else [Ended(row) for row in np.flatnonzero(terminated).tolist()]
        return rewards.tolist(), ended

    def _move(self, actions: Any) -> None:
        """The physics of as many rows as there are actions, and what is read of them."""
        model, frames, move = self.model, self.frame_skip, mujoco.mj_step
        forces = mujoco.mj_rnePostConstraint if self.definition.contact_forces else None
        for action, (data, control, copies) in zip(actions, self.moving, strict=False):
            control[:] = action
            move(model, data, frames)
            if forces is not None:
                forces(model, data)
            for target, source in copies:
                target[:] = source

    def swap(self, row: int, other: int) -> None:
        """Let two rows change places; what was read of them is read again after their next step."""
        self.datas[row], self.datas[other] = self.datas[other], self.datas[row]
        self.before[[row, other]] = self.before[[other, row]]
        self.moving[row], self.moving[other] = self._moving(row), self._moving(other)

    def close(self) -> None:
        """Nothing to close: memory is all they hold."""

    def _moving(self, row: int) -> tuple[mujoco.MjData, Any, list[tuple[Any, Any]]]:
        data = self.datas[row]
        copies = [(array[row].reshape(-1), getattr(data, field).reshape(-1)) for field, array in self.arrays.items()]
        return data, data.ctrl, copies

    @staticmethod
    def _copy(copies: list[tuple[Any, Any]]) -> None:
        for target, source in copies:
            target[:] = source

    def _state(self, first: int, end: int) -> SimpleNamespace:
        """The arrays of some rows, as views under MuJoCo's names."""
        if (first, end) not in self._states:
            views = {field: array[first:end] for field, array in self.arrays.items()}
            self._states[first, end] = SimpleNamespace(**views)
        return self._states[first, end]
