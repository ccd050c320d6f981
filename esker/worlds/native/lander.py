"""Native worlds of LunarLander: Box2D steps each row as Gymnasium's class has it, one formula pays all rows.

Gymnasium's own class starts an episode and hears contacts. Its step is done here without its checks and without a random
number at a time; actions are discrete and there is no wind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, sin
from typing import Any

import numpy as np

from esker.worlds.environments import Environment, silence
from esker.worlds.worlds import Ended

SCALE, FPS = 30.0, 50
HALF_WIDTH, HALF_HEIGHT = 600 / SCALE / 2, 400 / SCALE / 2
MAIN, SIDE = 13.0, 0.6  # power of the engines
MAIN_Y, SIDE_AWAY, SIDE_HEIGHT, LEG_DOWN = 4, 12, 14, 18
BLOCK = 64  # random numbers drawn at once


@dataclass(frozen=True)
class Lander:
    """The arguments of Gymnasium's LunarLander-v3 that native stepping takes."""

    gravity: float = -10.0


class LanderWorlds:
    """The LunarLander worlds of one worker, made when first needed."""

    def __init__(self, environment: Environment, rows: int, limit: int | None) -> None:
        self.environment = environment
        self.limit = limit
        self.envs: list[Any] = []
        self.dispersions: list[Iterator[tuple[float, float]]] = []
        self.shaping = np.zeros(rows)

    def reset(self, row: int, seed: int) -> Any:
        """Begin an episode by Gymnasium's own reset."""
        if row == len(self.envs):
            with silence():
                self.envs.append(self.environment.make().unwrapped)
            self.dispersions.append(iter(()))
        env = self.envs[row]
        observation = env.reset(seed=seed)[0]
        self.shaping[row] = env.prev_shaping
        self.dispersions[row] = _dispersions(env.np_random)
        return observation

    def step(self, actions: Any, count: int, observations: Any) -> tuple[list[float], list[Ended]]:
        """One step of each row; `info` is not produced."""
        actions = np.asarray(actions)
        rows = zip(self.envs, self.dispersions, actions.tolist(), strict=False)
        states = np.array([_move(env, action, *next(dispersion)) for env, dispersion, action in rows])
        x, y, vx, vy, angle, spin, left, right, over, awake = states.T
        x[:] = (x - HALF_WIDTH) / HALF_WIDTH
        y[:] = (y - (self.envs[0].helipad_y + LEG_DOWN / SCALE)) / HALF_HEIGHT
        vx[:] = vx * HALF_WIDTH / FPS
        vy[:] = vy * HALF_HEIGHT / FPS
        spin[:] = 20.0 * spin / FPS
        observations[:count] = states[:, :8].astype(np.float32)
        shaping = (
            -100 * np.sqrt(x * x + y * y) - 100 * np.sqrt(vx * vx + vy * vy) - 100 * np.abs(angle) + 10 * left + 10 * right
        )
        rewards = shaping - self.shaping[:count] - (actions == 2) * 0.30 - (actions % 2 == 1) * 0.03
        self.shaping[:count] = shaping
        crashed, asleep = (over > 0) | (np.abs(x) >= 1.0), awake == 0
        rewards[crashed], rewards[asleep] = -100, 100
        return rewards.tolist(), [Ended(row) for row in np.flatnonzero(crashed | asleep).tolist()]

    def swap(self, row: int, other: int) -> None:
        """Let two rows change places."""
        for column in (self.envs, self.dispersions):
            column[row], column[other] = column[other], column[row]
        self.shaping[[row, other]] = self.shaping[[other, row]]

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            env.close()


def _dispersions(random: np.random.Generator) -> Iterator[tuple[float, float]]:
    """Pairs of `random.uniform(-1, 1)/SCALE`, drawn in blocks."""
    while True:
        block = ((-1.0 + 2.0 * random.random(BLOCK)) / SCALE).tolist()
        yield from zip(block[::2], block[1::2], strict=True)


def _move(env: Any, action: int, along: float, across: float) -> tuple[float, ...]:
    """Fire an engine and step the physics: position, velocity, angle, spin, legs on the ground, game over, awake."""
    lander = env.lander
    if action:
        angle, at = lander.angle, lander.position
        tip_x, tip_y = sin(angle), cos(angle)
        side_x, side_y = -tip_y, tip_x
        if action == 2:
            power, arm = MAIN, MAIN_Y / SCALE + 2 * along
            ox = tip_x * arm + side_x * across
            oy = -tip_y * arm - side_y * across
            point = (at.x + ox, at.y + oy)
        else:
            power, arm = SIDE, 3 * across + (action - 2) * SIDE_AWAY / SCALE
            ox = tip_x * along + side_x * arm
            oy = -tip_y * along - side_y * arm
            point = (at.x + ox - tip_x * 17 / SCALE, at.y + oy + tip_y * SIDE_HEIGHT / SCALE)
        lander.ApplyLinearImpulse((-ox * power, -oy * power), point, True)
    env.world.Step(1.0 / FPS, 6 * 30, 2 * 30)
    place, speed, (left, right) = lander.position, lander.linearVelocity, env.legs
    contacts = left.ground_contact, right.ground_contact, env.game_over, lander.awake
    return place.x, place.y, speed.x, speed.y, lander.angle, lander.angularVelocity, *contacts
