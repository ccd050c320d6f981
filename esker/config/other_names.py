"""Names that other libraries give to esker's options: understood, with a notice that says esker's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esker.errors import UsageError

# Stable-Baselines3, CleanRL, EvoTorch, evosax, pycma and es-torch.
OTHER_NAMES = {
    "learning_rate": "lr",
    "center_learning_rate": "lr",
    "step_size": "lr",
    "popsize": "population",
    "pop_size": "population",
    "population_size": "population",
    "stdev_init": "sigma",
    "stdev": "sigma",
    "noise_std": "sigma",
    "sigma_init": "sigma",
    "num_actors": "workers",
    "n_envs": "workers",
    "num_envs": "workers",
    "n_workers": "workers",
    "total_timesteps": "steps",
    "total_steps": "steps",
    "n_generations": "generations",
    "num_generations": "generations",
    "iterations": "generations",
    "num_iterations": "generations",
    "gamma": "discount",
    "buffer_size": "replay_size",
    "learning_starts": "initial_steps",
    "hidden_sizes": "hidden",
    "net_arch": "hidden",
    "env_config": "env_kwargs",
}


def translate(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values under esker's names, with a notice for each that had another. Two names for one option raise UsageError."""
    result, notices = dict(values), []
    for other, name in OTHER_NAMES.items():
        if other not in result:
            continue
        value = result.pop(other)
        if name in result:
            raise UsageError(f"{other} is {value} and {name} is {result[name]}, which mean the same; give {name} alone")
        result[name] = value
        notices.append(f"{other} = {value} is {name} = {value}")
    return result, notices
