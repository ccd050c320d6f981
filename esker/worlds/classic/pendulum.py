"""Pendulum: swing it up and hold it there, with little torque."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from esker.worlds.arrays import Array, Arrays
from esker.worlds.classic.definition import State

SPEED, TORQUE, DT = 8, 2.0, 0.05


@dataclass(frozen=True)
class Pendulum:
    """Gymnasium's Pendulum-v1."""

    arrays: Arrays
    g: float = 10.0
    variables: ClassVar[int] = 2
    observation_size: ClassVar[int] = 3

    def start(self, random: np.random.Generator) -> Any:
        high = np.array([math.pi, 1.0])
        return random.uniform(low=-high, high=high)

    def observe(self, state: State) -> State:
        angle, speed = state
        return self.arrays.cos(angle), self.arrays.sin(angle), speed

    def step(self, state: State, actions: Array) -> tuple[State, Array, None]:
        arrays, (angle, speed) = self.arrays, state
        torque = arrays.clip(actions[:, 0], -TORQUE, TORQUE)
        upright = ((angle + math.pi) % (2 * math.pi)) - math.pi
        costs = arrays.power2(upright) + 0.1 * arrays.power2(speed) + 0.001 * arrays.power2(torque)
        speed = speed + (3 * self.g / (2 * 1.0) * arrays.sin(angle) + 3.0 * torque) * DT
        speed = arrays.clip(speed, -SPEED, SPEED)
        return (angle + speed * DT, speed), -costs, None
