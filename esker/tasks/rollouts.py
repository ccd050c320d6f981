"""Rollouts of explicit parameters, with every transition recorded: what the hybrids' individuals are evaluated on."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from esker.learners.rows import Layout, Rows
from esker.noise import Row
from esker.policies.heads import BoxHead
from esker.policies.mlp import MLP
from esker.tasks.environments import Env, Environment, silence
from esker.tasks.requests import Episodes

Act = Callable[[np.ndarray], np.ndarray]
BLOCK = 256  # rows that are allocated at a time
Board = Any  # a list or a memoryview whose first entry counts what this process has done


class Stage:
    """One environment with one actor; environments are made when first needed."""

    def __init__(self, environment: Environment, network: MLP, head: BoxHead, board: Board, fresh: bool = False) -> None:
        self.environment = environment
        self.head = head
        self.layout = Layout(network.inputs, head.size)
        self.board = board
        self.fresh = fresh
        self._rows = network.open(1)
        self._env: Env | None = None

    def become(self, parameters: Row) -> None:
        """Take an actor's parameters on."""
        self._rows.parameters[0] = parameters

    def act(self, observation: np.ndarray) -> np.ndarray:
        """The actor's action."""
        return self.head(self._rows.forward(observation[None]))[0]

    def steps(self, seed: int, act: Act) -> Iterator[Rows]:
        """Play one episode; yields each transition as a row of its own."""
        layout, env, board = self.layout, self._environment(), self.board
        size, reward_at = layout.observation, layout.reward
        observation = np.asarray(env.reset(seed=seed)[0], dtype=np.float32)
        over, at = False, BLOCK
        while not over:
            if at == BLOCK:
                block, at = np.empty((BLOCK, layout.width), dtype=np.float32), 0
            row = block[at]
            action = act(observation)
            following, reward, terminated, truncated, _ = env.step(action)
            row[:size] = observation
            row[size:reward_at] = action if action.ndim == 1 else action.reshape(-1)
            row[reward_at] = reward
            observation = row[reward_at + 1 : -1]
            observation[:] = following
            row[-1] = 0.0 if terminated else 1.0  # a time limit is not a termination
            board[0] += 1
            at += 1
            over = terminated or truncated
            yield row

    def run(self, episodes: Episodes) -> tuple[list[float], list[int], Rows | None]:
        """Returns and lengths of some episodes, and their transitions where they are to be recorded."""
        returns, lengths, recorded = [], [], []
        if episodes.parameters is not None:
            self.become(episodes.parameters)
        for seed in episodes.seeds:
            act = self.act if episodes.parameters is not None else self.random(seed)
            rows = finite(np.stack(list(self.steps(seed, act))))
            returns.append(float(rows[:, self.layout.reward].sum(dtype=np.float64)))
            lengths.append(len(rows))
            if episodes.record:
                recorded.append(rows)
        return returns, lengths, np.concatenate(recorded) if recorded else None

    def random(self, seed: int) -> Act:
        """Uniform actions, decided by the episode's seed."""
        rng = np.random.Generator(np.random.Philox(key=seed))
        low, high, shape = self.head.low, self.head.high, self.head.low.shape
        return lambda observation: (low + (high - low) * rng.random(shape, dtype=np.float32)).astype(np.float32)

    def _environment(self) -> Env:
        if self._env is None or self.fresh:
            self.close()
            with silence():
                self._env = self.environment.make()
        return self._env

    def close(self) -> None:
        """Close the environment."""
        if self._env is not None:
            self._env.close()
            self._env = None


def finite(rows: Rows) -> Rows:
    """An episode's rows. Numbers that are not finite raise FloatingPointError."""
    if not np.isfinite(rows).all():
        raise FloatingPointError("an observation, an action or a reward is not finite")
    return rows


def what_failed(error: Exception) -> tuple[str, str]:
    """An error in one line, and where it came from."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__, traceback.format_exc()
