"""Native worlds: MuJoCo steps the physics of each row, one formula for all rows makes observations and rewards of it.

What Gymnasium's class does in Python for every step of every environment is done once for all rows of a worker, and to
the same bits: the same calls of MuJoCo in the same order, the formulas of `mujoco_v5`, the same random numbers at a reset.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, NamedTuple

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
        _without_islands(self.model)
        self.frame_skip = self.definition.frame_skip
        self.clock = profiler_clock()
        self.worlds: list[_World] = []
        shapes = {field: getattr(mujoco.MjData(self.model), field).shape for field in self.definition.reads}
        self.read = np.zeros((rows, sum(math.prod(shape) for shape in shapes.values())))
        self.arrays = _parts(self.read, shapes)
        self.before = np.zeros(rows)  # the positions from which velocities are measured
        self.first = np.zeros((1, self.definition.observation_size))
        self._states: dict[tuple[int, int], SimpleNamespace] = {}

    def reset(self, row: int, seed: int) -> Any:
        """Begin an episode with the start that Gymnasium draws from this seed."""
        if row == len(self.worlds):
            self.worlds.append(_World.of(self.model, self.definition.reads))
        data = self.worlds[row].data
        mujoco.mj_resetData(self.model, data)
        data.qpos[:], data.qvel[:] = self.definition.start(seeding.np_random(seed)[0])
        mujoco.mj_forward(self.model, data)
        np.concatenate(self.worlds[row].sources, out=self.read[row])
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
        model, frames, move, read = self.model, self.frame_skip, mujoco.mj_step, np.concatenate
        forces = mujoco.mj_rnePostConstraint if self.definition.contact_forces else None
        for action, (data, control, sources), target in zip(actions, self.worlds, self.read, strict=False):
            control[:] = action
            move(model, data, frames)
            if forces is not None:
                forces(model, data)
            read(sources, out=target)

    def swap(self, row: int, other: int) -> None:
        """Let two rows change places; what was read of them is read again after their next step."""
        self.worlds[row], self.worlds[other] = self.worlds[other], self.worlds[row]
        self.before[[row, other]] = self.before[[other, row]]

    def close(self) -> None:
        """Nothing to close: memory is all they hold."""

    def _state(self, first: int, end: int) -> SimpleNamespace:
        """The arrays of some rows, as views under MuJoCo's names."""
        if (first, end) not in self._states:
            views = {field: array[first:end] for field, array in self.arrays.items()}
            self._states[first, end] = SimpleNamespace(**views)
        return self._states[first, end]


class _World(NamedTuple):
    """The simulation of one row: its data, and views of its control and of what is read of it."""

    data: mujoco.MjData
    control: Any
    sources: list[Any]

    @classmethod
    def of(cls, model: mujoco.MjModel, reads: Iterable[str]) -> _World:
        data = mujoco.MjData(model)
        return cls(data, data.ctrl, [getattr(data, field).reshape(-1) for field in reads])


def _parts(whole: Any, shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Arrays of these shapes for each row, as views of the rows of one."""
    parts, at = {}, 0
    for field, shape in shapes.items():
        end = at + math.prod(shape)
        parts[field] = whole[:, at:end].reshape(len(whole), *shape)
        at = end
    return parts


def _without_islands(model: mujoco.MjModel) -> None:
    """Let MuJoCo not look for islands of constraints where there is one tree of bodies, and so one island of all of them."""
    if model.ntree == 1:
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, "mjDSBL_ISLAND", 0))  # versions before it never look
