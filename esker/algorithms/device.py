"""Synchronous algorithms on a device: which world steps an environment there, and the engine that evaluates members."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from esker.algorithms.algorithm import Engine, Site
from esker.config.device import ON_CPU, check_device, device_name
from esker.config.options import SynchronousConfig
from esker.errors import UsageError
from esker.worlds.environments import Env, Environment
from esker.worlds.vectorizers import choose_vectorizer

if TYPE_CHECKING:
    from esker.engines.device_shared import SharedDevice

IMAGE_SLOTS, VECTOR_SLOTS = 32, 64  # of each worker whose policies are on a device


def choose_device(config: SynchronousConfig, environment: Environment, probe: Env) -> tuple[Any, list[str]]:
    """Choose device and world, or the vectoriser of worker processes. Raises UsageError."""
    if not config.on_device:
        return choose_vectorizer(config, environment, probe)
    import torch

    from esker.worlds.device import check_world

    device = config.device or ("cuda" if torch.cuda.is_available() else "cpu")
    check_device(device)
    config = replace(config, device=device, world=world_of(config, environment))
    if config.deterministic and ":" in str(config.world):
        raise UsageError(
            f"world is {config.world!r}, whose bits are its own: nothing to do for --deterministic; leave it out"
        )
    if config.world == ON_CPU:
        return choose_vectorizer(config, environment, probe)
    check_world(str(config.world), environment)
    return config, []


def world_of(config: SynchronousConfig, environment: Environment) -> str:
    """The world of a configuration: as requested, else one on the device where it can do what is asked."""
    from esker.worlds.device import world_for

    asked = (environment.wrappers, environment.time_aware, config.vectorizer, config.fresh_environments)
    return config.world or (ON_CPU if any(asked) else world_for(environment)) or ON_CPU


def is_one_batch(config: Any, environment: Environment) -> bool:
    """Whether several seeds of a configuration are one batch, because their worlds are on a device."""
    return getattr(config, "on_device", False) and world_of(config, environment) != ON_CPU


def open_device_engine(state: Any, site: Site) -> Engine:
    """The engine of a state whose policies are on a device. A device that is not there raises UsageError."""
    from esker.engines.device import MOST, device_engine, served_engine
    from esker.tasks.device import DeviceEpisodes

    config: SynchronousConfig = state.config
    world, device, said = _place(config)
    engine: Engine
    if world == ON_CPU:
        episodes = replace(state.task, slots=config.slots or (IMAGE_SLOTS if state.task.images else VECTOR_SLOTS))
        engine = served_engine(episodes, device, config.workers, state.table, config.step_timeout, site.note)
    else:
        task = DeviceEpisodes(state.task, world, device, config.slots or min(_items(state), MOST), config.deterministic)
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
    slots = fitting(lambda some: DeviceSlots(runs, world, device, some, states[0].config.deterministic), each, device, note)
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
    if config.world == ON_CPU:
        return config.world, config.device, f"policies on {name}; worker processes step the environments"
    said = f"worlds ({config.world}) and policies on {name}; esker eval evaluates in Gymnasium on the CPU"
    if config.world == "warp" and name != "cpu" and not config.deterministic:
        said += "; MuJoCo Warp does not repeat bit for bit on a GPU without --deterministic, so a resumed run is not exact"
    return config.world, config.device, said
