"""Options under other names: of earlier versions and of other libraries; and removed ones."""

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
# An option that was removed, the value at which it did nothing, and what to do instead.
REMOVED: dict[str, tuple[Any, str]] = {
    "critics": (1, "there is one critic"),
    "sigma_adaptation": (None, "use --algo snes or pgpe, which adapt a scale for every parameter"),
    "reward_scale": (1.0, "scale the reward with a wrapper, or change --lr: only raw shaping depends on it"),
}
# Options that became fields of another one.
FIELDS = {f"cap_{name}": ("cap_growth", name) for name in ("initial", "threshold", "factor")}
OLD_NAMES = (*REMOVED, "actors", *FIELDS, *OTHER_NAMES)


def rename(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
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


def modernize(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values under their present names, with a notice for each translation. What cannot be translated raises UsageError."""
    result, notices = rename(values)
    for name, (harmless, remedy) in REMOVED.items():
        if name in result and str(result.pop(name)) not in (str(harmless), str(harmless).removesuffix(".0")):
            raise UsageError(f"{name} is {values[name]}, and this option was removed; {remedy}")
    for name in FIELDS.keys() & result.keys():
        option, part = FIELDS[name]
        if option in values:
            raise UsageError(
                f"{name} and {option} are given, and {name} is the field {part} of {option}; give {option} alone"
            )
        result[option] = {**result.get(option, {}), part: result.pop(name)}
        notices.append(f"{name} = {values[name]} is {part} = {values[name]} of {option}")
    if "actors" in result:
        actors = result.pop("actors")
        if "workers" in result and str(result["workers"]) != str(actors):
            raise UsageError(f"workers is {result['workers']} and actors is {actors}, which mean the same; give one of them")
        result["workers"] = actors
        notices.append(f"actors = {actors} is workers = {actors}")
    return result, notices


def whole_goal(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values in which removing the goal also removes its patience."""
    gone = "goal" in values and str(values["goal"]).lower() == "none" and "patience" not in values
    return {**values, "patience": None} if gone else dict(values)


def stored(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a run folder of any version: there `actors` gave way to `workers` and to `deterministic`.

    Rewards had gradients before there was an option.
    """
    if values.get("algo") == "function":
        values = {**values, "gradients": values.get("gradients", True)}
    gives_way = "workers" in values or values.get("deterministic", False)
    return modernize({name: value for name, value in values.items() if name != "actors" or not gives_way})[0]
