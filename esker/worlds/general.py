"""Gymnasium environments as worlds: the general case, one Python call a row."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from esker.worlds.environments import Env, Environment, bare_step, close_quietly, silence
from esker.worlds.worlds import Ended, Watch, describe_error


class GymnasiumWorlds:
    """Environments as Gymnasium makes them, made when first needed. An exception in one ends only its row's episode."""

    def __init__(self, environment: Environment, watch: Watch, fresh: bool = False) -> None:
        self.environment = environment
        self.watch = watch
        self.fresh = fresh
        self.limit: int | None = None
        self.envs: list[Env] = []
        self.steps: list[Callable[[Any], Any]] = []

    def reset(self, row: int, seed: int) -> Any:
        """Begin an episode in a row's environment."""
        return self._environment(row).reset(seed=seed)[0]

    def step(self, actions: Any, count: int, observations: Any) -> tuple[list[Any], list[Ended]]:
        """Step the rows one after the other."""
        steps, shape, (board, items) = self.steps, observations.shape[1:], self.watch
        rewards: list[Any] = []
        ended: list[Ended] = []
        for row in range(count):
            board[1] = items[row]
            try:
                observation, reward, terminated, truncated, _ = steps[row](actions[row])
                if type(observation) is not np.ndarray:
                    observation = np.asarray(observation)
                if observation.shape != shape:
                    raise ValueError(f"observation has shape {observation.shape}; expected {shape}")
                observations[row] = observation
                over = bool(terminated or truncated)
            except (Exception, SystemExit) as error:  # only this episode ends, not the worker
                rewards.append(math.nan)
                ended.append(Ended(row, describe_error(error), traceback.format_exc()))
                continue
            rewards.append(reward)
            if over:
                ended.append(Ended(row))
        return rewards, ended

    def swap(self, row: int, other: int) -> None:
        """Let the environments of two rows change places."""
        self.envs[row], self.envs[other] = self.envs[other], self.envs[row]
        self.steps[row], self.steps[other] = self.steps[other], self.steps[row]

    def close(self) -> None:
        """Close the environments."""
        for env in self.envs:
            close_quietly(env)  # a broken environment must not hide what happened before

    def _environment(self, row: int) -> Env:
        if row < len(self.envs) and not self.fresh:
            return self.envs[row]
        with silence():
            env = self.environment.make_beside(self.envs[0] if self.envs else None)
        step, self.limit = bare_step(env)
        if row < len(self.envs):
            close_quietly(self.envs[row])
            self.envs[row], self.steps[row] = env, step
        else:
            self.envs.append(env)
            self.steps.append(step)
        return env
