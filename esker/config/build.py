"""From flags, files and presets to a checked configuration. Precedence: defaults < preset < file < flags."""

from __future__ import annotations

import json
import math
import os
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields, is_dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path, PurePath
from typing import Any, Literal, TypeVar, Union

import tomli_w

from esker.errors import UsageError, nearest

C = TypeVar("C")


def build(kind: type[C], *layers: Mapping[str, Any], new: bool = False) -> C:
    """A configuration of this kind from layers of values; later layers override earlier ones. Raises UsageError.

    `new`: of a run that begins, not of one that may be an earlier version's.
    """
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if name not in known:
                raise UsageError(f"unknown option {name!r}{nearest(name, known)}")
            merged[name] = convert(known[name], hints[name], value, merged.get(name))
    config = kind(**merged)
    config.check()  # type: ignore[attr-defined]
    if new:
        config.check_new()  # type: ignore[attr-defined]
    return config


def convert(option: Field[Any], hint: Any, value: Any, below: Any = None) -> Any:
    """One option's value, from a flag's text or a file's value, checked against its type and bounds.

    `below` is the value of a lower layer: an option with fields keeps those that this value leaves out.
    """
    try:
        if is_dataclass(hint):
            return _with_fields(option.name, hint, value, below)
        result = _convert(hint, value, option.metadata.get("group"))
    except UsageError:  # of one of its fields
        raise
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # 10**400 is not a float
        raise UsageError(f"{option.name} is {value!r}; expected {describe(hint)}") from error
    _check_bounds(option, result)
    return result


def _convert(hint: Any, value: Any, group: str | None = None) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if takes_path(hint):
        return _name_or_path(arguments[0], value, group)
    if origin in (Union, types.UnionType):
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            return None
        return _convert(next(a for a in arguments if a is not types.NoneType), value)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(value)
        return value
    if origin is tuple:
        parts = _parts(value)
        return tuple(_convert(arguments[0], part, group) for part in parts)
    if origin is dict:
        parsed = json.loads(value) if isinstance(value, str) else value
        if not isinstance(parsed, dict):
            raise ValueError(value)
        tomli_w.dumps(parsed).encode()  # a run folder must be able to hold it
        return parsed
    return _scalar(hint, value)


def _with_fields(name: str, kind: Any, value: Any, below: Any) -> Any:
    """An option that is a dataclass, from a JSON object or a table."""
    known, hints = {f.name: f for f in fields(kind)}, typing.get_type_hints(kind)
    given = json.loads(value) if isinstance(value, str) else asdict(value) if isinstance(value, kind) else value
    if not isinstance(given, Mapping):
        raise ValueError(value)
    for part in map(str, given):
        if part not in known:
            raise UsageError(f"{name} has no field {part!r}{nearest(part, known)}; expected {describe(kind)}")
    try:
        converted = {part: convert(known[part], hints[part], given[part]) for part in given}
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error
    return replace(kind() if below is None else below, **converted)


def takes_path(hint: Any) -> bool:
    """Whether a type is `Literal[…] | str`: one of some names, or an import path module:name."""
    arguments = typing.get_args(hint)
    return len(arguments) == 2 and typing.get_origin(arguments[0]) is Literal and arguments[1] is str


def _name_or_path(names: Any, value: Any, group: str | None) -> str:
    """A known name, one that an installed package offers in `group`, or an import path. The path is imported later."""
    if not isinstance(value, str):
        raise ValueError(value)
    module, _, attribute = value.strip().partition(":")
    if value in typing.get_args(names) or (module and attribute):
        return value.strip()
    if group is not None and value in entry_points(group=group).names:
        return value
    raise ValueError(value)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [] if value.lower() == "none" else [part.strip() for part in value.split(",") if part.strip()]
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _scalar(hint: Any, value: Any) -> Any:
    if hint is bool:
        if isinstance(value, bool):
            return value
        raise ValueError(value)
    if isinstance(value, bool):
        raise ValueError(value)
    if hint is int:
        return whole_number(value)
    if hint is float:
        number = float(value)
        if math.isnan(number):
            raise ValueError(value)
        return number
    if hint is str and isinstance(value, PurePath):
        value = str(value)
    if hint is str and isinstance(value, str):
        if "\0" in value:
            raise ValueError(value)
        value.encode()  # half of a surrogate pair cannot be encoded
        return value
    raise ValueError(value)


def whole_number(value: Any) -> int:
    """A whole number, also as text and as 1e6. What is none raises ValueError, TypeError or OverflowError."""
    number = float(value)
    if isinstance(value, bool) or not number.is_integer():  # infinities are not
        raise ValueError(value)
    return int(value) if not isinstance(value, float) and str(value).strip().lstrip("+-").isdigit() else int(number)


def _check_bounds(option: Field[Any], value: Any) -> None:
    above, low, high = (option.metadata.get(name) for name in ("above", "low", "high"))
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        if (
            (above is not None and number <= above)
            or (low is not None and number < low)
            or (high is not None and number > high)
            or math.isinf(number)
        ):
            limits = [f"above {above:g}" if above is not None else "", f"at least {low:g}" if low is not None else ""]
            limits += [f"at most {high:g}" if high is not None else "", "finite" if math.isinf(number) else ""]
            raise UsageError(f"{option.name} is {number}; expected a number " + " and ".join(filter(None, limits)))


def describe(hint: Any) -> str:
    """A type as text, for messages and help."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if takes_path(hint):
        return describe(arguments[0]) + ", or module:name"
    if origin in (Union, types.UnionType):
        return describe(next(a for a in arguments if a is not types.NoneType)) + " or 'none'"
    if origin is Literal:
        return "one of " + ", ".join(str(a) for a in arguments)
    if origin is tuple:
        if takes_path(arguments[0]):
            return "a list of " + describe(arguments[0]).removeprefix("one of ")
        return "whole numbers with commas, as 64,64" if arguments[0] is int else "a list of names"
    if origin is dict:
        return "a JSON object"
    if is_dataclass(hint):
        return "a JSON object of " + ", ".join(f.name for f in fields(hint))
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[hint]


def read_values(source: str) -> dict[str, Any]:
    """The values of a `--config`: a TOML or JSON file, or inline JSON. Raises UsageError."""
    text = source.strip()
    if text.startswith("{"):
        return _object(lambda: json.loads(text), "the JSON given to --config")
    path = Path(source)
    if not os.path.isfile(source):
        raise UsageError(f"configuration file {source!r} does not exist; expected a .toml or .json file, or inline JSON")
    if path.suffix == ".json":
        return _object(lambda: json.loads(path.read_text()), f"{source!r}")
    return _object(lambda: tomllib.loads(path.read_text()), f"{source!r}")


def _object(read: typing.Callable[[], Any], what: str) -> dict[str, Any]:
    try:
        values = read()
    except (ValueError, OSError, RecursionError) as error:
        raise UsageError(f"{what} cannot be read: {error}".replace("\n", " ")) from error
    if not isinstance(values, dict):
        raise UsageError(f"{what} is a {type(values).__name__}; expected an object of option names and values")
    if isinstance(values.get("options"), dict):  # a preset file
        return dict(values["options"])
    return values


def to_toml(config: Any) -> str:
    """Everything resolved, as TOML; options that are None are left out, since TOML has no null."""
    return tomli_w.dumps({name: _plain(value) for name, value in asdict(config).items() if value is not None})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def default_of(option: Field[Any]) -> Any:
    """The default of an option."""
    if option.default_factory is not MISSING:
        return option.default_factory()
    return option.default


def optional_names(kind: type[Any]) -> list[str]:
    """The options of a configuration that may be None."""
    hints = typing.get_type_hints(kind)
    return [f.name for f in fields(kind) if types.NoneType in typing.get_args(hints[f.name])]
