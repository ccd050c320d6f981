"""Synchronous algorithms on a device: which world steps an environment there, and the engine that evaluates members."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from esker.algorithms.algorithm import Engine, Site
from esker.config.device import check_device, device_name
from esker.config.options import SynchronousConfig
from esker.worlds.environments import Env, Environment
from esker.worlds.vectorizers import choose_vectorizer

if TYPE_CHECKING:
    from esker.engines.device_shared import SharedDevice


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

    world, device, said = _place(state.config)
    task = DeviceEpisodes(state.task, world, device, state.config.slots or min(_items(state), MOST))
    engine = device_engine(task, state.table, site.note)
    site.note(said)
    return engine


def share_device(states: Sequence[Any], note: Callable[[str], None]) -> SharedDevice:
    """One device for the states of several runs that differ in their seeds. `slots` are those of all runs together."""
    from esker.engines.device import fitting
    from esker.engines.device_shared import MOST, SharedDevice
    from esker.tasks.device_slots import DeviceSlots

    world, device, said = _place(states[0].config)
    items, runs = _items(states[0]), [(state.task, state.table) for state in states]
    rounds = math.ceil(items * len(states) / MOST)
    wanted = states[0].config.slots
    each = math.ceil(items / rounds) if wanted is None else max(1, wanted // len(states))
    slots = fitting(lambda some: DeviceSlots(runs, world, device, some), each, device, note)
    note(f"{len(states)} runs with {slots.each:,} slots each; {said}")
    return SharedDevice(slots)


def _items(state: Any) -> int:
    """The episodes of a generation."""
    config: SynchronousConfig = state.config
    return int(state.strategy.population * config.episodes_per_member + config.center_episodes)


def _place(config: SynchronousConfig) -> tuple[str, str, str]:
    """World and device of a configuration, and a notice that names them. A device that is not there raises UsageError."""
    assert config.device is not None
    assert config.world is not None
    check_device(config.device)
    name = device_name(config.device)
    said = f"worlds ({config.world}) and policies on {name}; esker eval evaluates in Gymnasium on the CPU"
    if config.world == "warp" and name != "cpu":
        said += "; MuJoCo Warp does not repeat bit for bit on a GPU, so a resumed run is not exact"
    return config.world, config.device, said
