"""Gymnasium's MuJoCo and classic control environments and LunarLander without Gymnasium's step: the same bits sooner."""

from __future__ import annotations

import gymnasium as gym

from esker.worlds.classic import CLASSIC
from esker.worlds.environments import Env, Environment, silence
from esker.worlds.mujoco_log import hear_mujoco
from esker.worlds.native.classic import ClassicWorlds
from esker.worlds.native.coverage import LANDER, options_of, refusal, unchecked
from esker.worlds.native.lander import LanderWorlds
from esker.worlds.native.selftest import ROWS, same_bits
from esker.worlds.worlds import Worlds

__all__ = ["gives_the_bits_of", "open_native", "refusal", "unchecked"]


def open_native(environment: Environment, rows: int) -> Worlds:
    """Native worlds for an environment that they cover."""
    limit = environment.max_episode_steps or gym.registry[environment.name].max_episode_steps
    if environment.name in CLASSIC:
        return ClassicWorlds(environment.name, options_of(environment), rows, limit)
    if environment.name == LANDER:
        return LanderWorlds(environment, rows, limit)
    from esker.worlds.native.simulation import NativeWorlds  # MuJoCo is imported with it

    hear_mujoco()
    with silence():
        return NativeWorlds(environment.name, options_of(environment), rows, limit)


def gives_the_bits_of(environment: Environment, probe: Env) -> bool:
    """Whether a few steps of native worlds give the bits that a Gymnasium environment gives on this machine."""
    return same_bits(open_native(environment, ROWS), probe)
