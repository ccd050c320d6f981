"""Acrobot: two links, torque on the joint between them; the tip must reach a height."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any, ClassVar

import numpy as np

from esker.worlds.arrays import Array, Arrays
from esker.worlds.classic.definition import State

DT, GRAVITY = 0.2, 9.8
LENGTH, MASS, CENTER, INERTIA = 1.0, 1.0, 0.5, 1.0  # of both links; the centre of mass is measured from the joint
SPEEDS = 4 * pi, 9 * pi


@dataclass(frozen=True)
class Acrobot:
    """Gymnasium's Acrobot-v1, by the equations of Sutton and Barto's book."""

    arrays: Arrays
    variables: ClassVar[int] = 4
    observation_size: ClassVar[int] = 6

    def start(self, random: np.random.Generator) -> Any:
        return random.uniform(low=-0.1, high=0.1, size=(4,)).astype(np.float32)

    def observe(self, state: State) -> State:
        arrays, (first, second, *speeds) = self.arrays, state
        return arrays.cos(first), arrays.sin(first), arrays.cos(second), arrays.sin(second), *speeds

    def step(self, state: State, actions: Array) -> tuple[State, Array, Array]:
        torque = actions - 1.0
        first, second, speed, other = self._runge_kutta(state, torque)
        arrays = self.arrays
        state = self._wrap(first), self._wrap(second), _bound(arrays, speed, SPEEDS[0]), _bound(arrays, other, SPEEDS[1])
        terminated = -arrays.cos(state[0]) - arrays.cos(state[1] + state[0]) > 1.0
        return state, 1.0 * terminated - 1.0, terminated

    def _runge_kutta(self, start: State, torque: Array) -> State:
        def moved(slopes: State, by: float) -> State:
            return [variable + by * slope for variable, slope in zip(start, slopes, strict=True)]

        one = self._slopes(start, torque)
        two = self._slopes(moved(one, DT / 2.0), torque)
        three = self._slopes(moved(two, DT / 2.0), torque)
        four = self._slopes(moved(three, DT), torque)
        return moved([a + 2 * b + 2 * c + d for a, b, c, d in zip(one, two, three, four, strict=True)], DT / 6.0)

    def _slopes(self, state: State, torque: Array) -> State:
        cos, sin, power2 = self.arrays.cos, self.arrays.sin, self.arrays.power2
        theta1, theta2, speed1, speed2 = state
        arm = MASS * LENGTH * CENTER
        bend, turn = cos(theta2), sin(theta2)
        d1 = MASS * CENTER**2 + MASS * (LENGTH**2 + CENTER**2 + 2 * LENGTH * CENTER * bend) + INERTIA + INERTIA
        d2 = MASS * (CENTER**2 + LENGTH * CENTER * bend) + INERTIA
        phi2 = MASS * CENTER * GRAVITY * cos(theta1 + theta2 - pi / 2.0)
        phi1 = -arm * power2(speed2) * turn - 2 * arm * speed2 * speed1 * turn
        phi1 = phi1 + (MASS * CENTER + MASS * LENGTH) * GRAVITY * cos(theta1 - pi / 2) + phi2
        force = torque + d2 / d1 * phi1 - arm * power2(speed1) * turn - phi2
        acceleration2 = force / (MASS * CENTER**2 + INERTIA - power2(d2) / d1)
        acceleration1 = -(d2 * acceleration2 + phi1) / d1
        return speed1, speed2, acceleration1, acceleration2

    def _wrap(self, angle: Array) -> Array:
        """Angles brought to [-π, π] by whole turns, one after the other."""
        while (over := angle > pi).any():
            angle = self.arrays.where(over, angle - 2 * pi, angle)
        while (under := angle < -pi).any():
            angle = self.arrays.where(under, angle + 2 * pi, angle)
        return angle


def _bound(arrays: Arrays, speed: Array, limit: float) -> Array:
    return arrays.clip(speed, -limit, limit)
