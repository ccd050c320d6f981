"""Gymnasium's MuJoCo v5 environments without Gymnasium's step: the same physics and the same bits in less time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium as gym

from esker.worlds.environments import Env, Environment, silence
from esker.worlds.native.coverage import options_of, refusal, unchecked
from esker.worlds.native.selftest import ROWS, same_bits

if TYPE_CHECKING:
    from esker.worlds.native.simulation import NativeWorlds

__all__ = ["gives_the_bits_of", "open_native", "refusal", "unchecked"]


def open_native(environment: Environment, rows: int) -> NativeWorlds:
    """Native worlds for an environment that they cover."""
    from esker.worlds.native.simulation import NativeWorlds

    limit = environment.max_episode_steps or gym.registry[environment.name].max_episode_steps
    with silence():
        return NativeWorlds(environment.name, options_of(environment), rows, limit)


def gives_the_bits_of(environment: Environment, probe: Env) -> bool:
    """Whether a few steps of native worlds give the bits that a Gymnasium environment gives on this machine."""
    return same_bits(open_native(environment, ROWS), probe)
