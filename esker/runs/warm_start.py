"""Warm starts: initial parameters from another run, one of its checkpoints, or a torch state dict."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from esker.algorithms import registry
from esker.algorithms.es import EvolutionStrategy
from esker.errors import UsageError, first_line
from esker.noise.directions import Vector
from esker.policies.network import Network, Shapes, size
from esker.policies.normalizer import Statistics
from esker.runs import checkpoints
from esker.runs.checkpoints import DamagedCheckpoint
from esker.runs.folder import RunFolder
from esker.runs.loading import policy_maker
from esker.runs.places import place
from esker.runs.pointers import wanted
from esker.runs.trust import OF_CLUSTER, OF_ENVIRONMENT, OF_TRAINING, Trust
from esker.system.words import flag
from esker.worlds.atari import Atari
from esker.worlds.environments import Environment

OF_EPISODES = {"noop_max", "sticky_actions", "max_frames"}  # of a game: what a policy sees and does stays the same


def warm_start(state: Any, source: str, trust: Trust = False) -> str:
    """Let a state begin from `source`; returns a notice. What is missing or does not fit raises UsageError."""
    path = place(source)
    if path.is_dir():
        return _from_run(state, path, trust)
    if path.is_file():
        state.begin_from(_from_state_dict(state.task.network, path))
        return f"initial parameters are those of the state dict {source}"
    raise UsageError(f"init_from is {source!r}, which does not exist; expected a run folder, a checkpoint or a state dict")


def _from_run(state: EvolutionStrategy, path: Path, trust: Trust) -> str:
    """Parameters, and the observation statistics without which they mean nothing."""
    chosen, notices = path, list[str]()
    if not (path / "state.safetensors").is_file():  # not a checkpoint: then a run, whose best one is meant
        folder = RunFolder.open(path)
        snapshots = checkpoints.generations(folder.checkpoints)
        if not snapshots:
            raise UsageError(f"init_from is {str(path)!r}, a run without a checkpoint yet")
        generation, notices = wanted(folder, "best", snapshots[-1])
        chosen = folder.checkpoints / checkpoints.folder_name(generation)
    try:
        snapshot = checkpoints.read(chosen)
    except DamagedCheckpoint as error:
        raise UsageError(f"init_from: checkpoint {error}; name another one, as {chosen.parent}/000010") from error
    folder = RunFolder(chosen if (chosen / "config.toml").is_file() else chosen.parent.parent)
    folder.check_trust(trust, OF_ENVIRONMENT | OF_CLUSTER | OF_TRAINING)
    config, network = folder.config(registry.options_of), state.task.network
    task = policy_maker(config)(config, Environment(config.env), folder.about())
    _check_shapes(str(path), task.network.shapes, network.shapes)
    statistics = None
    if task.normalize and state.task.normalize:
        arrays = snapshot.arrays
        statistics = Statistics(
            snapshot.values["statistics_count"], arrays["statistics.total"], arrays["statistics.squares"]
        )
    state.begin_from(snapshot.arrays["center"], statistics, snapshot.arrays.get("reference"))
    with_statistics = " and its observation statistics" if statistics is not None else ""
    made = Environment(config.env, **registry.find(config.algo).environment(config))
    flags = [*_flags_of_policy(task, state.task), *_flags_of_game(made, state.task.environment)]
    differently = [f"that policy was trained with {' '.join(flags)}, and acts differently without"] if flags else []
    return "; ".join([f"initial parameters{with_statistics} are those of {chosen}", *notices, *differently])


def _flags_of_policy(theirs: Any, ours: Any) -> list[str]:
    """What must be asked for, too, for equal parameters to act alike."""
    activations = [getattr(task.network, "activation", None) for task in (theirs, ours)]
    modes = [getattr(task.head, "mode", None) for task in (theirs, ours)]
    flags = [f"--activation {activations[0]}"] if None not in activations and activations[0] != activations[1] else []
    flags += [f"--action-mode {modes[0]}"] if None not in modes and modes[0] != modes[1] else []
    if theirs.normalize != ours.normalize:
        flags.append(flag("normalize_observations", theirs.normalize))
    return flags


def _flags_of_game(theirs: Environment, ours: Environment) -> list[str]:
    """What must be asked for, too, for a policy to see and do the same in a game."""
    if not theirs.is_atari or not ours.is_atari:
        return []
    names = [field.name for field in fields(Atari) if field.name not in OF_EPISODES]
    values = [(name, getattr(theirs.atari, name), getattr(ours.atari, name)) for name in names]
    return [flag(name, value) for name, value, other in values if value != other]


def _from_state_dict(network: Network, path: Path) -> Vector:
    """The flat parameters in a torch state dict: by name where all names agree, else in order."""
    tensors = _read_tensors(path)
    shapes = network.shapes
    if set(shapes) <= set(tensors):
        tensors = {name: tensors[name] for name in shapes}
    _check_shapes(str(path), {name: tuple(tensor.shape) for name, tensor in tensors.items()}, shapes)
    return np.concatenate([tensor.float().cpu().numpy().ravel() for tensor in tensors.values()])


def _read_tensors(path: Path) -> dict[str, Any]:
    """The tensors of a file, read without executing anything in it."""
    import safetensors.torch
    import torch

    try:
        if path.suffix == ".safetensors":
            return dict(safetensors.torch.load_file(path))
        values = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever the damage provokes
        raise UsageError(f"init_from {str(path)!r} is not a state dict: {first_line(error)}") from error
    if isinstance(values, dict) and isinstance(values.get("state_dict"), dict):
        values = values["state_dict"]
    if not isinstance(values, dict) or not values or not all(isinstance(v, torch.Tensor) for v in values.values()):
        raise UsageError(f"init_from {str(path)!r} holds no state dict; save one with torch.save(module.state_dict(), path)")
    return dict(values)


def _check_shapes(source: str, given: Shapes, expected: Shapes) -> None:
    if list(given.values()) != list(expected.values()):
        raise UsageError(
            f"init_from {source!r} does not fit: it has parameters {describe_shapes(given)}, "
            f"this network has {describe_shapes(expected)}"
        )


def describe_shapes(shapes: Shapes) -> str:
    """Shapes in a few characters, as 64×4 64 2×64 2 (450 numbers)."""
    return " ".join("×".join(map(str, shape)) or "1" for shape in shapes.values()) + f" ({size(shapes.values()):,} numbers)"
