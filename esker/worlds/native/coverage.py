"""Which environments native stepping covers: classes of Gymnasium's own, unwrapped, in checked versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from importlib import metadata
from typing import Any

import gymnasium as gym

from esker.worlds.classic import CLASSIC
from esker.worlds.environments import Environment
from esker.worlds.mujoco_v5 import DEFINITIONS
from esker.worlds.native.lander import Lander

CHECKED = (  # tests/test_native_worlds.py ran with these, one with the other
    {"gymnasium": "1.4.0", "mujoco": "4.0.0"},
    {"gymnasium": "1.2.3", "mujoco": "3.3.7"},
)
LANDER = "LunarLander-v3"
COVERED: dict[str, Any] = {**DEFINITIONS, **CLASSIC, LANDER: Lander}
COVERS = "it covers Gymnasium's " + ", ".join(COVERED) + ", unwrapped; use --vectorizer gymnasium"
PICTURES = {  # arguments that only pictures depend on
    "default_camera_config",
    "width",
    "height",
    "camera_id",
    "camera_name",
    "max_geom",
    "visual_options",
}


def refusal(environment: Environment) -> str | None:
    """Why native stepping does not cover an environment; None where it does."""
    name = environment.name
    if environment.factory is not None or ":" in name:
        return f"vectorizer native does not run your own environments ({name}): {COVERS}"
    for option, given in (("wrapper", environment.wrappers), ("time_aware", environment.time_aware)):
        if given:
            return f"vectorizer native does not support {option}: {COVERS}"
    spec = gym.registry.get(name)
    if name not in COVERED or spec is None or not str(spec.entry_point).startswith("gymnasium.envs."):
        return f"vectorizer native does not cover {name}: {COVERS}"
    if spec.kwargs or spec.additional_wrappers:
        return f"vectorizer native does not cover {name} as it is registered here: {COVERS}"
    wrong = _wrong_option(name, environment.kwargs)
    return wrong and f"vectorizer native does not take {wrong} for {name}: {COVERS}"


def _wrong_option(name: str, kwargs: dict[str, Any]) -> str | None:
    """The first argument that native stepping does not know, or not with this kind of value."""
    defaults = {field.name: field.default for field in fields(COVERED[name]) if field.default is not MISSING}
    for option, value in kwargs.items():
        known = option in PICTURES or (option == "render_mode" and value is None)
        if not known and not (option in defaults and _fits(option, value, defaults[option])):
            return f"{option} {value!r}"
    return None


def _fits(option: str, value: Any, default: Any) -> bool:
    """Whether a value is of its default's kind: switches, whole numbers, texts, numbers, and ranges of two numbers."""
    if option == "main_body":
        return isinstance(value, int | str)
    if isinstance(default, tuple):
        return isinstance(value, Sequence) and len(value) == 2 and all(_number(end) for end in value)
    if isinstance(default, bool | str):
        return type(value) is type(default)
    return isinstance(value, int) and value > 0 if option == "frame_skip" else _number(value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def unchecked(environment: Environment) -> str | None:
    """The installed versions, where native stepping of an environment was not checked with them together; else None."""
    packages = ("gymnasium", "mujoco") if environment.name in DEFINITIONS else ("gymnasium",)
    try:
        installed = {package: metadata.version(package) for package in packages}
    except metadata.PackageNotFoundError as error:
        return f"{error.name} missing"
    if any(installed.items() <= checked.items() for checked in CHECKED):
        return None
    return " and ".join(f"{package} {version}" for package, version in installed.items())


def options_of(environment: Environment) -> dict[str, Any]:
    """The arguments of a covered environment that its definition takes."""
    return {name: value for name, value in environment.kwargs.items() if name not in PICTURES | {"render_mode"}}
