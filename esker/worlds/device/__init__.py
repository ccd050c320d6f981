"""Worlds on a device: classic control and a swarm in torch, MuJoCo by Warp, or any that `module:make_world` makes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch

from esker.errors import UsageError
from esker.system.imports import import_callable
from esker.worlds.classic import CLASSIC
from esker.worlds.device.worlds import DeviceWorlds, MakeWorld, Seeds, Stepped
from esker.worlds.environments import Environment, silence
from esker.worlds.mujoco_v5 import DEFINITIONS
from esker.worlds.native.coverage import options_of, refusal

__all__ = ["DeviceWorlds", "MakeWorld", "Seeds", "Stepped", "check_world", "open_world", "world_for"]

SWARM = "esker.worlds.device.swarm:Swarm"
IN_TORCH = (*CLASSIC, SWARM)


def world_for(environment: Environment) -> str | None:
    """The kind of world that steps an environment on a device, if there is one."""
    if environment.name in IN_TORCH:
        return "torch"
    return "warp" if environment.name in DEFINITIONS else None


def check_world(world: str, environment: Environment) -> None:
    """Refuse what a kind of world cannot step. Raises UsageError."""
    for option, given in (("wrapper", environment.wrappers), ("time_aware", environment.time_aware)):
        if given:
            raise UsageError(f"{option} is for environments on the CPU, and worlds are on a device; use --world cpu")
    if world == "torch" and environment.name not in IN_TORCH:
        raise UsageError(f"world is 'torch', which has {', '.join(IN_TORCH)}; this is {environment.name}")
    if world == "warp":
        _check_warp(environment)
    elif ":" in world:
        import_callable(world, "world")
    elif world != "torch":
        raise UsageError(f"world is {world!r}; expected torch, warp, cpu or module:make_world")


def _check_warp(environment: Environment) -> None:
    if environment.name not in DEFINITIONS or refusal(environment) is not None:
        known = ", ".join(DEFINITIONS)
        raise UsageError(
            f"world is 'warp', which has Gymnasium's {known} with Gymnasium's options; this is {environment.name}"
        )
    try:
        import mujoco_warp  # noqa: F401
    except ImportError as error:
        raise UsageError("world warp needs MuJoCo Warp, which is not installed; pip install 'esker[warp]'") from error


def open_world(
    world: str, environment: Environment, rows: int, device: torch.device, deterministic: bool = False
) -> DeviceWorlds:
    """`rows` worlds on a device. Exceptions of a user's function pass through."""
    if ":" in world:
        return _limited(import_callable(world, "world")(rows, device, **environment.kwargs), environment)
    if environment.name == SWARM:
        from esker.worlds.device.swarm import SwarmWorlds

        return _limited(SwarmWorlds(rows, device, **environment.kwargs), environment)
    limit = environment.max_episode_steps or gym.registry[environment.name].max_episode_steps
    if world == "warp":
        from esker.worlds.device.warp import WarpWorlds

        with silence():
            return WarpWorlds(environment.name, rows, device, limit, deterministic, **options_of(environment))
    from esker.worlds.device.classic import ClassicDeviceWorlds

    return ClassicDeviceWorlds(environment.name, rows, device, limit, **options_of(environment))


def _limited(worlds: Any, environment: Environment) -> DeviceWorlds:
    """Worlds with the requested time limit, if it is lower than their own."""
    limits = [limit for limit in (environment.max_episode_steps, worlds.limit) if limit is not None]
    worlds.limit = min(limits, default=None)
    return worlds
