"""CartPole: a pole on a cart that is pushed left or right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from esker.worlds.arrays import Array, Arrays
from esker.worlds.classic.definition import State

GRAVITY, CART, POLE, LENGTH, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
MASS, MOMENT = POLE + CART, POLE * LENGTH
ANGLE, PLACE = 12 * 2 * math.pi / 360, 2.4  # where an episode ends


@dataclass(frozen=True)
class CartPole:
    """Gymnasium's CartPole-v1."""

    arrays: Arrays
    sutton_barto_reward: bool = False
    variables: ClassVar[int] = 4
    observation_size: ClassVar[int] = 4

    def start(self, random: np.random.Generator) -> Any:
        return random.uniform(low=-0.05, high=0.05, size=(4,))

    def observe(self, state: State) -> State:
        return state

    def step(self, state: State, actions: Array) -> tuple[State, Array | float, Array]:
        arrays, (x, x_dot, theta, theta_dot) = self.arrays, state
        force = FORCE * (2.0 * (actions == 1) - 1.0)
        cosine, sine = arrays.cos(theta), arrays.sin(theta)
        push = (force + MOMENT * arrays.square(theta_dot) * sine) / MASS
        swing = (GRAVITY * sine - cosine * push) / (LENGTH * (4.0 / 3.0 - POLE * arrays.square(cosine) / MASS))
        acceleration = push - MOMENT * swing * cosine / MASS
        x, x_dot = x + TAU * x_dot, x_dot + TAU * acceleration
        theta, theta_dot = theta + TAU * theta_dot, theta_dot + TAU * swing
        terminated = (x < -PLACE) | (x > PLACE) | (theta < -ANGLE) | (theta > ANGLE)
        rewards = 0.0 - 1.0 * terminated if self.sutton_barto_reward else 1.0
        return (x, x_dot, theta, theta_dot), rewards, terminated
