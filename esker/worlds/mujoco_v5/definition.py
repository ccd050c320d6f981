"""What a definition of an environment consists of: a scene (the model's constants), and formulas over many worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from esker.worlds.arrays import Array, Arrays

Vector = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Range = tuple[float, float]
State = Any
"""Arrays under MuJoCo's names for them (`state.qpos`, `state.cfrc_ext`, ...), with one world a row."""


@dataclass(frozen=True)
class Scene:
    """The constants of a model that formulas read."""

    arrays: Arrays
    model: Any
    timestep: float
    dt: float  # of an environment's step: the timestep times frame_skip
    qpos: Vector  # where a world starts, before noise
    qvel: Vector

    @classmethod
    def of(cls, model: Any, frame_skip: int, arrays: Arrays) -> Scene:
        """The scene of an `mujoco.MjModel`."""
        timestep = model.opt.timestep
        return cls(arrays, model, timestep, timestep * frame_skip, model.qpos0.copy(), np.zeros(model.nv))

    def body(self, body: int | str) -> int:
        """The number of a body."""
        return int(self.model.body(body).id)


class Definition(Protocol):
    """One environment: its options are its fields, under the names of Gymnasium's keyword arguments."""

    scene: Scene
    xml_file: str
    frame_skip: int
    reads: ClassVar[tuple[str, ...]]  # the arrays of the state that formulas read
    contact_forces: ClassVar[bool]  # whether `cfrc_ext` is among them, which MuJoCo computes when asked

    @property
    def observation_size(self) -> int: ...

    def observe(self, state: State, out: Array) -> None:
        """Write each world's observation into its row of `out`."""
        ...

    def position(self, state: State) -> Array | None:
        """The position that velocity is computed from, kept between steps. None where the reward needs none."""
        ...

    def outcome(self, state: State, actions: Array, before: Array | None, after: Array | None) -> tuple[Array, Array | None]:
        """Each world's reward, and whether it terminated (None: none of them); `before` and `after` are positions."""
        ...

    def start(self, random: np.random.Generator) -> tuple[Vector, Vector]:
        """The positions and velocities that one episode starts with."""
        ...


def uniform_start(scene: Scene, random: np.random.Generator, scale: float) -> tuple[Vector, Vector]:
    """Uniform noise of positions and of velocities."""
    qpos = scene.qpos + random.uniform(low=-scale, high=scale, size=scene.model.nq)
    return qpos, scene.qvel + random.uniform(low=-scale, high=scale, size=scene.model.nv)


def normal_start(scene: Scene, random: np.random.Generator, scale: float) -> tuple[Vector, Vector]:
    """Uniform noise of positions, Gaussian noise of velocities."""
    qpos = scene.qpos + random.uniform(low=-scale, high=scale, size=scene.model.nq)
    return qpos, scene.qvel + scale * random.standard_normal(scene.model.nv)


def write_coordinates(state: State, out: Array, skip: int) -> None:
    """Observe positions, except for the first `skip` of them, and velocities."""
    count = state.qpos.shape[1] - skip
    out[:, :count] = state.qpos[:, skip:]
    out[:, count : count + state.qvel.shape[1]] = state.qvel


def within(values: Array, limits: Range) -> Array:
    """Whether a value lies strictly between its limits."""
    low, high = limits
    return (low < values) & (values < high)
