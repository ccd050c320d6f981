"""The self-test at the start of a run: a few steps of native worlds, compared with Gymnasium's own environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from esker.worlds.environments import Env
from esker.worlds.worlds import Worlds

Record = list[tuple[bytes, float, bool]]  # observation, reward and termination of each step of an episode
ROWS = 2
STEPS = 8


def same_bits(native: Worlds, probe: Env) -> bool:
    """Whether native worlds, of two rows or more, give the bits that Gymnasium's own environment gives."""
    space, random = probe.action_space, np.random.default_rng(0)
    actions: Any
    if isinstance(space, gym.spaces.Box):
        actions = random.uniform(space.low, space.high, size=(STEPS, ROWS, *space.shape)).astype(np.float32)
    else:
        actions = random.integers(space.n, size=(STEPS, ROWS))  # type: ignore[attr-defined]
    return all(ours == _of_gymnasium(probe, row, actions[:, row]) for row, ours in enumerate(_of_native(native, actions)))


def _of_native(native: Worlds, actions: Any) -> list[Record]:
    observations = np.array([native.reset(row, row) for row in range(ROWS)], dtype=np.float64)
    records: list[Record] = [[(_bits(observation), 0.0, False)] for observation in observations]
    for each in actions:
        rewards, ended = native.step(each, ROWS, observations)
        over = {end.row for end in ended}
        for row, record in enumerate(records):
            record.append((_bits(observations[row]), rewards[row], row in over))
    return [_first_episode(record) for record in records]


def _of_gymnasium(env: Env, seed: int, actions: Any) -> Record:
    record: Record = [(_bits(env.reset(seed=seed)[0]), 0.0, False)]
    for action in actions:
        observation, reward, terminated, _, _ = env.step(action)
        record.append((_bits(observation), float(reward), bool(terminated)))
        if terminated:
            break
    return record


def _bits(observation: Any) -> bytes:
    return np.asarray(observation, dtype=np.float64).tobytes()


def _first_episode(record: Record) -> Record:
    """A record until its first termination."""
    ends = [number for number, step in enumerate(record) if step[2]]
    return record[: ends[0] + 1] if ends else record
