"""Synchronous algorithms on a device: which world steps an environment there, and the engine that evaluates members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from esker.algorithms.algorithm import Engine, Site
from esker.config.device import check_device, device_name
from esker.config.options import SynchronousConfig
from esker.worlds.environments import Env, Environment
from esker.worlds.vectorizers import choose_vectorizer


def choose_device(config: SynchronousConfig, environment: Environment, probe: Env) -> tuple[Any, list[str]]:
    """Choose device and world, or the vectoriser of worker processes. Raises UsageError."""
    if not config.on_device:
        return choose_vectorizer(config, environment, probe)
    import torch

    from esker.worlds.device import check_world, world_for

    device = config.device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_device(device)
    world = config.world or world_for(environment)
    check_world(world, environment)
    return replace(config, device=device, world=world), []


def open_device_engine(state: Any, site: Site) -> Engine:
    """The engine of a state whose worlds are on a device. A device that is not there raises UsageError."""
    from esker.engines.device import MOST, device_engine
    from esker.tasks.device import DeviceEpisodes

    config: SynchronousConfig = state.config
    assert config.device is not None
    assert config.world is not None
    check_device(config.device)
    items = state.strategy.population * config.episodes_per_member + config.center_episodes
    task = DeviceEpisodes(state.task, config.world, config.device, config.slots or min(items, MOST))
    engine = device_engine(task, state.table, site.note)
    site.note(
        f"worlds ({config.world}) and policies on {device_name(config.device)}; esker eval evaluates in Gymnasium on the CPU"
    )
    return engine
