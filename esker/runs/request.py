"""From a request to a run's configuration: algorithm, environment, preset, file and flags brought together."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium as gym

from esker.algorithms import registry
from esker.algorithms.algorithm import Algorithm
from esker.config import aesrl
from esker.config.build import build, read_values
from esker.config.legacy import modernize, whole_goal
from esker.config.options import OF_OWN
from esker.config.published import published
from esker.config.translate import Names, names_in, translate
from esker.errors import UsageError
from esker.policies.custom import network_name
from esker.presets import Preset, find, for_environment, load_all
from esker.runs.fitting import fit_preset
from esker.worlds.atari import sees_memory
from esker.worlds.environments import INEXACT_RESETS, Env, Environment, resolve, with_factory
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
    of_file: dict[str, Any]  # the file's part of it
    derived: dict[str, str]  # options that were computed from another one


def configure(
    env: EnvironmentLike | None,
    options: Mapping[str, Any],
    *,
    algo: str | None = None,
    preset: str | None = "auto",
    config: str | Mapping[str, Any] | None = None,
    foreign: Mapping[str, Any] | None = None,
) -> Request:
    """The configuration of a request. Precedence: defaults < preset < file < options. Raises UsageError.

    `foreign` are flags under other systems' names: they are translated with the file, and count more than it.
    """
    file = {} if config is None else read_values(config) if isinstance(config, str) else dict(config)
    names = names_in(file | dict(foreign or {}))
    if env is None and names.env is None and "algorithm" in file:
        env, why = aesrl.environment_of(config if isinstance(config, str) and not config.lstrip().startswith("{") else None)
    else:
        why = None
    options, renamed = modernize(options)
    strategy = strategy_named(options, file)
    if (algo or names.algo or strategy) == strategy and strategy is not None:
        algo, options, file = strategy, _without(options, "strategy"), _without(file, "strategy")
        renamed.append(f"strategy {strategy} is an algorithm, with defaults of its own: --algo {strategy}")
        names = names_in(file | dict(foreign or {}))
    algorithm, env, notices = _named(algo, env, preset, names, strategy)
    notices += [why] if why else []
    notices += renamed
    place, options = _described(env, options)
    environment, translated = resolve(place) if isinstance(place, str) else (with_factory(place), [])
    notices += translated
    chosen = _preset(preset, environment.name, algorithm.name)
    if preset == "auto" and chosen is not None and sees_memory(options, file):
        notices.append(f"preset {chosen.name} is for the screen of the game, and its memory is observed: not used")
        chosen, preset = None, None
    base, inexact = _made_anew(environment.name, algorithm, options)
    below, texts = _of_preset(chosen, environment.name) if chosen else ({}, [])
    if chosen is None and preset == "auto":
        below, texts = published(environment.name, algorithm.name)
    base |= below
    notices += inexact + texts
    if preset == "auto" and algo is None and names.algo is None:
        notices += _better(environment.name, algorithm.name)
    done = translate(names.values, algorithm.name, algorithm.config, base, options, whole="algorithm" in file)
    file, renamed = modernize(done.values)
    notices += renamed + done.notices
    options = whole_goal(options)
    asked = {**file, **options}
    refuse_others(algorithm, asked)
    _refuse_strategy(preset, base, asked)
    base, fitted = fit_preset(base, asked, algorithm.config)
    named = {"env": environment.name, "algo": algo if algo and ":" in algo else algorithm.name}
    result = _build(algorithm, chosen if preset == "auto" else None, base, file, options, named)
    environment = replace(environment, **algorithm.environment(result))
    return Request(algorithm, result, environment, notices + fitted + _random_only(result), asked, file, done.derived)


def strategy_named(*layers: Mapping[str, Any]) -> str | None:
    """The strategy that the first layer with one asks for, if it is an algorithm with options of its own."""
    found = next((layer["strategy"] for layer in layers if layer.get("strategy") is not None), None)
    return found if found in OF_OWN else None


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def _made_anew(env: str, algorithm: Algorithm, options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A new environment for every episode where a used one is known not to repeat an episode from its seed."""
    known = "fresh_environments" in {field.name for field in fields(algorithm.config)}
    asked = "fresh_environments" in options or options.get("vectorizer") not in (None, "gymnasium")
    if env not in INEXACT_RESETS or not known or asked:
        return {}, []
    return {"fresh_environments": True}, [f"fresh_environments: {env} repeats an episode only on a new instance"]


def _better(env: str, algo: str) -> list[str]:
    """What to take instead of the default algorithm, where a preset of another one has learnt the environment."""
    others = [one for one in load_all().values() if (one.env, one.instead_of) == (env, algo) and one.evidence]
    seen = [(one, str(one.evidence).partition(";")[0].partition(" (")[0]) for one in others]
    return [f"{one.algo} has learnt it with its preset ({text}): esker train {env} --algo {one.algo}" for one, text in seen]


def _random_only(config: Any) -> list[str]:
    """Whether a run ends before its random play does."""
    limit, initial = config.training_limit, getattr(config, "initial_steps", 0)
    if limit is None or limit > initial:
        return []
    return [f"all of the {limit:,} training steps are random play: lower --initial-steps, which is {initial:,}"]


def _build(algorithm: Algorithm, chosen: Preset | None, *layers: Mapping[str, Any]) -> Any:
    """The configuration of all layers; an error that an automatic preset causes names the preset."""
    try:
        return build(algorithm.config, *layers, new=True)
    except UsageError as error:
        if chosen is None:
            raise
        other = _refusal(algorithm, *layers[1:])
        if other == str(error):  # it does not come from the preset
            raise
        preset = f"preset {chosen.name}, chosen for {chosen.env}"
        why = f"by {preset}; --preset none turns it off" if other is None else f"with {preset}"
        raise UsageError(f"{error} ({why})") from error


def _refusal(algorithm: Algorithm, *layers: Mapping[str, Any]) -> str | None:
    """Why a configuration is refused, or None."""
    try:
        build(algorithm.config, *layers, new=True)
    except UsageError as error:
        return str(error)
    return None


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
    algo: str | None, env: Any, preset: str | None, names: Names, strategy: str | None
) -> tuple[Algorithm, EnvironmentLike, list[str]]:
    """Algorithm, environment and notices. What is unknown, missing or contradictory raises UsageError."""
    notices = []
    of_preset = algorithm_of_preset(preset)
    algorithm = registry.find(algo or names.algo or of_preset or "es")
    if algorithm.find is not None:
        raise UsageError(f"algorithm {algorithm.name!r} has no environment; it is run by esker.Evolution(model, reward)")
    if algo is None and algorithm.name != "es":
        notices.append(f"algorithm {algorithm.name}, as the {'configuration' if names.algo else 'preset'} says")
    elif names.algo not in (None, algo, algorithm.name):
        notices.append(f"the configuration's algorithm {names.algo} is overridden by {algo}")
    if of_preset is not None and of_preset != algorithm.name:
        other = "leave out strategy or the preset" if strategy == algorithm.name else f"use --algo {of_preset}"
        raise UsageError(f"preset {preset!r} is for {of_preset}, and the algorithm is {algorithm.name}; {other}")
    if env is None:
        if names.env is None:
            raise UsageError("the following arguments are required: ENV, as in: esker train CartPole-v1")
        return algorithm, names.env, notices
    if names.env not in (None, env):
        notices.append(f"the configuration's environment {names.env} is overridden by the request")
    return algorithm, env, notices


def algorithm_named(arguments: Sequence[str]) -> str:
    """The algorithm that a command line names, by --algo, its configuration or its preset; es where it names none."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("--algo", "--config", "--preset", "--algorithm", "--run", "--strategy"):
        parser.add_argument(flag)
    try:
        given, _ = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError:  # a flag without its value: the whole parser says so
        return "es"
    if given.algo is not None:
        return str(given.algo)
    flags = {name: value for name, value in vars(given).items() if name in ("algorithm", "run") and value is not None}
    values = read_values(given.config) if given.config else {}
    named = names_in(values | flags).algo
    return named or strategy_named(vars(given), values) or algorithm_of_preset(given.preset) or "es"


def algorithm_of_preset(name: str | None) -> str | None:
    """The algorithm of a preset that is named in full."""
    found = None if name in SPECIAL else load_all().get(str(name))
    return found.algo if found else None


def _preset(name: str | None, env: str, algo: str) -> Preset | None:
    if name is None or name == "none":
        return None
    return for_environment(env, algo) if name == "auto" else find(name, algo)


def _of_preset(preset: Preset, env: str) -> tuple[dict[str, Any], list[str]]:
    """A preset's options, what it is, and whether it was made for this environment."""
    notices = [f"preset {preset.name}: {preset.about}"]
    if preset.env != env:
        own = for_environment(env, preset.algo)
        instead = f"; its own is {own.name}" if own else ""
        notices.append(f"preset {preset.name} was made for {preset.env}, and this is {env}{instead}")
    return dict(preset.options), notices


def refuse_others(algorithm: Algorithm, names: Iterable[str]) -> None:
    """Options that only other algorithms have raise UsageError, naming these."""
    known = {f.name for f in fields(algorithm.config)}
    for name in names:
        if name not in known:
            having = [other for other in registry.names() if name in {f.name for f in fields(registry.find(other).config)}]
            if having:
                raise UsageError(f"{name} is not an option of {algorithm.name}; it belongs to {', '.join(having)}")


def _refuse_strategy(preset: str | None, base: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """A strategy that is an algorithm, but not the request's, raises UsageError, naming all that this one does not take."""
    strategy = strategy_named(asked, base)
    if strategy is None:
        return
    known = {f.name for f in fields(registry.options_of(strategy))}
    named = {**base, **asked} if "strategy" in base else asked  # a preset file of an earlier version has one
    others = [name for name in named if name not in known] + (["the preset"] if algorithm_of_preset(preset) else [])
    raise UsageError(
        f"strategy {strategy} is an algorithm with options of its own; "
        f"use --algo {strategy} and leave out {', '.join(others)}"
    )
