"""From a request to a run's configuration: algorithm, environment, preset, file and flags brought together."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium as gym

from esker import presets
from esker.algorithms import registry
from esker.algorithms.algorithm import Algorithm
from esker.config import aesrl, rllib
from esker.config.build import build, read_values
from esker.config.legacy import modernize, whole_goal
from esker.errors import UsageError
from esker.policies.custom import network_name
from esker.worlds.environments import Env, Environment, resolve, with_factory
from esker.worlds.instances import from_instance

EnvironmentLike = str | Callable[..., Env] | Env
SPECIAL = (None, "auto", "none")  # presets that name no algorithm


@dataclass(frozen=True)
class Request:
    """What a run is asked to be, checked; `notices` say what was chosen and translated."""

    algorithm: Algorithm
    config: Any
    environment: Environment
    notices: list[str]
    asked: dict[str, Any]  # what file and options say, under esker's names


def configure(
    env: EnvironmentLike | None,
    options: Mapping[str, Any],
    *,
    algo: str | None = None,
    preset: str | None = "auto",
    config: str | Mapping[str, Any] | None = None,
) -> Request:
    """The configuration of a request. Precedence: defaults < preset < file < options. Raises UsageError."""
    given = {} if config is None else read_values(config) if isinstance(config, str) else dict(config)
    algorithm, env, given, notices = _named(algo, env, preset, given)
    options, renamed = modernize(options)
    notices += renamed
    place, options = _described(env, options)
    environment, translated = resolve(place) if isinstance(place, str) else (with_factory(place), [])
    notices += translated
    chosen = _preset(preset, environment.name, algorithm.name)
    base = {} if chosen is None else chosen.options
    if chosen is not None:
        notices.append(f"preset {chosen.name}: {chosen.about}")
        if chosen.env != environment.name:
            own = presets.for_environment(environment.name, algorithm.name)
            instead = f"; its own is {own.name}" if own else ""
            notices.append(f"preset {chosen.name} was made for {chosen.env}, and this is {environment.name}{instead}")
    file, translated = rllib.translate(given, base.get("sigma"))
    file, renamed = modernize(file)
    notices += renamed
    named = {"env": environment.name, "algo": algo if algo and ":" in algo else algorithm.name}
    options = whole_goal(options)
    asked = {**file, **options}
    refuse_others(algorithm, asked)
    try:
        result = build(algorithm.config, base, file, options, named)
    except UsageError as error:
        if chosen is None or preset != "auto":
            raise
        build(algorithm.config, {}, file, options, named)  # what is wrong without the preset says so without it
        why = f"by preset {chosen.name}, chosen for {chosen.env}; --preset none does without"
        raise UsageError(f"{error} ({why})") from error
    environment = replace(environment, **algorithm.environment(result))
    return Request(algorithm, result, environment, notices + translated, asked)


def _described(env: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """An environment and options in which Python objects are names and factories. What cannot be raises UsageError."""
    result = dict(options)
    if isinstance(env, gym.Env):
        env, arguments = from_instance(env)
        if arguments:
            result["env_kwargs"] = {**arguments, **(result.get("env_kwargs") or {})}
    if result.get("network") is not None:
        result["network"] = network_name(result["network"])
    return env, result


def _named(
    algo: str | None, env: Any, preset: str | None, given: Mapping[str, Any]
) -> tuple[Algorithm, Any, dict[str, Any], list[str]]:
    """Algorithm, environment, values and notices. What is unknown, missing or contradictory raises UsageError."""
    named = registry.find(algo) if algo is not None else None
    translated = aesrl.translate(given, lambda name: {f.name for f in fields(registry.find(name).config)}, algo)
    notices = list(translated.notices)
    of_preset = algorithm_of_preset(preset)
    algorithm = named or registry.find(translated.algo or of_preset or "es")
    if algo is None and algorithm.name != "es":
        notices.insert(0, f"algorithm {algorithm.name}, as the {'configuration' if translated.algo else 'preset'} says")
    if of_preset is not None and of_preset != algorithm.name:
        raise UsageError(
            f"preset {preset!r} is for {of_preset}, and the algorithm is {algorithm.name}; use --algo {of_preset}"
        )
    if env is None:
        if translated.env is None:
            raise UsageError("the following arguments are required: ENV, as in: esker train CartPole-v1")
        env = translated.env
    elif translated.env is not None and translated.env != env:
        notices.append(f"AES-RL's env_name = {translated.env} gives way to the environment of the request")
    return algorithm, env, translated.values, notices


def algorithm_named(arguments: Sequence[str]) -> str:
    """The algorithm that a command line names, by --algo, its configuration or its preset; es where it names none."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("--algo", "--config", "--preset"):
        parser.add_argument(flag)
    try:
        given, _ = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError:  # a flag without its value: the whole parser says so
        return "es"
    if given.algo is not None:
        return str(given.algo)
    values = read_values(given.config) if given.config else {}
    return aesrl.algorithm_of(values) or algorithm_of_preset(given.preset) or "es"


def algorithm_of_preset(name: str | None) -> str | None:
    """The algorithm of a preset that is named in full."""
    found = None if name in SPECIAL else presets.load_all().get(str(name))
    return found.algo if found else None


def _preset(name: str | None, env: str, algo: str) -> presets.Preset | None:
    if name is None or name == "none":
        return None
    return presets.for_environment(env, algo) if name == "auto" else presets.find(name, algo)


def refuse_others(algorithm: Algorithm, names: Iterable[str]) -> None:
    """Options that only other algorithms have raise UsageError, naming these."""
    known = {f.name for f in fields(algorithm.config)}
    for name in names:
        if name not in known:
            having = [other for other in registry.names() if name in {f.name for f in fields(registry.find(other).config)}]
            if having:
                raise UsageError(f"{name} is not an option of {algorithm.name}; it belongs to {', '.join(having)}")
