"""MountainCar: a car too weak for its hill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from esker.worlds.arrays import Array, Arrays
from esker.worlds.classic.definition import State

LEFT, RIGHT, GOAL, SPEED, FORCE, GRAVITY = -1.2, 0.6, 0.5, 0.07, 0.001, 0.0025


@dataclass(frozen=True)
class MountainCar:
    """Gymnasium's MountainCar-v0."""

    arrays: Arrays
    goal_velocity: float = 0
    variables: ClassVar[int] = 2
    observation_size: ClassVar[int] = 2

    def start(self, random: np.random.Generator) -> Any:
        return np.array([random.uniform(low=-0.6, high=-0.4), 0])

    def observe(self, state: State) -> State:
        return state

    def step(self, state: State, actions: Array) -> tuple[State, float, Array]:
        arrays, (position, velocity) = self.arrays, state
        velocity = velocity + ((actions - 1) * FORCE + arrays.library_cos(3 * position) * (-GRAVITY))
        velocity = arrays.clip(velocity, -SPEED, SPEED)
        position = arrays.clip(position + velocity, LEFT, RIGHT)
        velocity = arrays.where((position == LEFT) & (velocity < 0), 0.0, velocity)
        return (position, velocity), -1.0, (position >= GOAL) & (velocity >= self.goal_velocity)
