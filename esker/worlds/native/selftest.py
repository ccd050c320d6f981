"""The self-test at the start of a run: a few steps of native worlds beside those of Gymnasium's own environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from esker.worlds.environments import Env

if TYPE_CHECKING:
    from esker.worlds.native.simulation import NativeWorlds

Record = list[tuple[bytes, float, bool]]  # observation, reward and termination of each step of an episode
ROWS = 2
STEPS = 8


def same_bits(native: NativeWorlds, probe: Env) -> bool:
    """Whether native worlds, of two rows or more, give the bits that Gymnasium's own environment gives."""
    low, high = native.model.actuator_ctrlrange.T
    shape = (STEPS, ROWS, native.model.nu)
    actions = np.random.default_rng(0).uniform(low, high, size=shape).astype(np.float32)
    return all(ours == _of_gymnasium(probe, row, actions[:, row]) for row, ours in enumerate(_of_native(native, actions)))


def _of_native(native: NativeWorlds, actions: Any) -> list[Record]:
    observations = np.array([native.reset(row, row) for row in range(ROWS)])
    records: list[Record] = [[(observation.tobytes(), 0.0, False)] for observation in observations]
    for each in actions:
        rewards, ended = native.step(each, ROWS, observations)
        over = {end.row for end in ended}
        for row, record in enumerate(records):
            record.append((observations[row].tobytes(), rewards[row], row in over))
    return [_first_episode(record) for record in records]


def _of_gymnasium(env: Env, seed: int, actions: Any) -> Record:
    record: Record = [(env.reset(seed=seed)[0].tobytes(), 0.0, False)]
    for action in actions:
        observation, reward, terminated, _, _ = env.step(action)
        record.append((observation.tobytes(), float(reward), bool(terminated)))
        if terminated:
            break
    return record


def _first_episode(record: Record) -> Record:
    """A record until its first termination."""
    ends = [number for number, step in enumerate(record) if step[2]]
    return record[: ends[0] + 1] if ends else record
