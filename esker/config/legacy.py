"""Options under other names: of earlier versions and of other libraries; and which are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esker.config import other_names
from esker.errors import UsageError

# An option that is gone, the value at which it did nothing, and what to do instead.
REMOVED: dict[str, tuple[Any, str]] = {
    "critics": (1, "there is one critic"),
    "sigma_adaptation": (None, "use --algo snes or pgpe, which adapt a scale for every parameter"),
    "reward_scale": (1.0, "scale the reward with a wrapper, or change --lr: only raw shaping depends on it"),
}
# Options that became fields of another one.
FIELDS = {f"cap_{name}": ("cap_growth", name) for name in ("initial", "threshold", "factor")}
OLD_NAMES = (*REMOVED, "actors", *FIELDS, *other_names.OTHER_NAMES)


def modernize(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values under their present names, with a notice for each that was translated. What cannot be raises UsageError."""
    result, notices = other_names.translate(values)
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
    """Values in which a goal that is taken away takes its patience with it."""
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
