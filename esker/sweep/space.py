"""The search space: which options vary, and how. `lr=0.001..0.1:log`, `shaping=centered_rank,normalized`, or a TOML file."""

from __future__ import annotations

import math
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Union

from esker.config.build import convert
from esker.config.legacy import FIELDS, OTHER_NAMES, REMOVED
from esker.config.resume import RESUMABLE
from esker.errors import UsageError, nearest

FIXED = RESUMABLE | {"env", "algo", "run_dir", "env_kwargs", "wrapper", "cap_growth"}
MOST_TRIALS = 100_000  # of a sweep, and so points of a grid
HOW = "write name=low..high, name=low..high:log, or name=a,b,c"
LISTS = {"hidden": "layers are written 64x64", "crop": "rows are written 34x194", "actions": "lists are written RIGHTxLEFT"}
PAIRS = {"crop", "actions"}  # lists that no single item makes
# What es-torch's sweep varies; kept to the options that the algorithm has.
DEFAULT_SPACE = {
    "lr": "0.001..0.1:log",
    "sigma": "0.01..0.2:log",
    "weight_decay": "0.0001..0.1:log",
    "antithetic": "true,false",
    "shaping": "centered_rank,normalized,log_utility",
    "hidden": "none,32x32,64x64",
    "population": "16..128:log",
}


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, spread evenly or in ratio (`log`); `points` of them for a grid."""

    low: float
    high: float
    log: bool = False
    whole: bool = False
    points: int | None = None

    def __str__(self) -> str:
        marks = (":log" if self.log else "") + (f":{self.points}" if self.points else "")
        return f"{self.low:g}..{self.high:g}{marks}"

    def grid(self, name: str) -> list[float]:
        """The points of a grid. A range that does not say how many raises UsageError."""
        if self.points is None:
            if self.whole and not self.log and self.high - self.low < 10:
                return [int(value) for value in range(int(self.low), int(self.high) + 1)]
            raise UsageError(
                f"{name} is a range, and a grid needs points; write {name}={self.low:g}..{self.high:g}:5, or choices"
            )
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        steps = [low + (high - low) * i / max(1, self.points - 1) for i in range(self.points)]
        values = [math.exp(step) if self.log else step for step in steps]
        values = [min(max(value, self.low), self.high) for value in values]
        return list(dict.fromkeys(round(value) for value in values)) if self.whole else values


@dataclass(frozen=True)
class Choices:
    """One of these values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ",".join(map(str, self.values))

    def grid(self, name: str) -> list[Any]:
        """The points of a grid."""
        return list(self.values)


Dimension = Range | Choices
Space = dict[str, Dimension]


def parse_space(texts: Iterable[str], kind: type[Any]) -> Space:
    """The space of `--space` arguments, each `name=…` or a TOML file. Unknown names and empty ranges raise UsageError."""
    space: Space = {}
    for text in texts:
        entries = _inline(text) if "=" in text else _file(Path(text))
        for name, value in entries.items():
            if name in space:
                raise UsageError(f"{name} is given twice in the space")
            space[name] = dimension(name, value, kind)
    if not space:
        raise UsageError(f"the space is empty; {HOW}")
    return space


def default_space(config: Any, taken: Iterable[str]) -> Space:
    """The default space: learning rate, sigma, decay, sampling, shaping, layers and population, as far as they apply."""
    kind = type(config)
    known = {f.name for f in fields(kind)} - set(taken)
    if getattr(config, "network", "mlp") != "mlp":
        known.discard("hidden")
    return {name: dimension(name, value, kind) for name, value in DEFAULT_SPACE.items() if name in known}


def dimension(name: str, value: Any, kind: type[Any]) -> Dimension:
    """One option's dimension from text, a list of choices, or a table with low, high, log and points."""
    options = {f.name: f for f in fields(kind)}
    if name not in options:
        raise UsageError(_unknown(name, set(options) - FIXED))
    if name in FIXED:
        why = "it does not change what a run computes" if name in RESUMABLE else "all trials share it"
        raise UsageError(f"{name} cannot be swept: {why}; give it as a flag")
    option, hint = options[name], typing.get_type_hints(kind)[name]
    if isinstance(value, str) and ".." in value:
        value = _table(name, value)
    if isinstance(value, Mapping):
        return _range(name, value, option, hint)
    values = value if isinstance(value, list) else str(value).split(",")
    return _choices(option, hint, values)


def _unknown(name: str, known: set[str]) -> str:
    """Why a name is not an option: it became a field, was removed, belongs to another library, or is misspelt."""
    if name in FIELDS:
        option, part = FIELDS[name]
        return f"{name} cannot be swept: it is the field {part} of {option}; give that as a flag"
    if name in REMOVED:
        return f"{name} was removed: {REMOVED[name][1]}"
    ours = OTHER_NAMES.get(name)
    return f"unknown option {name!r} in the space" + (f"; did you mean {ours!r}?" if ours in known else nearest(name, known))


def _choices(option: Field[Any], hint: Any, values: Sequence[Any]) -> Choices:
    chosen = tuple(_choice(option, hint, part) for part in values)
    if not chosen:
        raise UsageError(f"{option.name} has no values in the space; {HOW}")
    written = f"; {LISTS[option.name]}" if option.name in LISTS else ""
    for value in chosen if option.name in PAIRS else ():
        if value != "none" and "x" not in value:
            raise UsageError(f"{option.name} is {value!r} in the space; expected two or more items{written}")
    if len(set(chosen)) < len(chosen):
        raise UsageError(f"{option.name} has a value twice in the space{written}")
    return Choices(chosen)


def _inline(text: str) -> dict[str, Any]:
    name, _, value = text.partition("=")
    if not name.strip() or not value.strip():
        raise UsageError(f"space is {text!r}; {HOW}")
    return {name.strip().replace("-", "_"): value.strip()}


def _file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UsageError(f"space is {str(path)!r}, which is neither a file nor a range; {HOW}")
    try:
        return tomllib.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error}".replace("\n", " ")) from error


def _table(name: str, text: str) -> dict[str, Any]:
    ends, *marks = text.split(":")
    low, _, high = ends.partition("..")
    table: dict[str, Any] = {"low": low, "high": high}
    for mark in marks:
        if mark == "log":
            table["log"] = True
        elif mark.isdigit():
            table["points"] = int(mark)
        else:
            raise UsageError(f"{name} is {text!r} in the space: {mark!r} is neither 'log' nor a number of grid points")
    return table


def _range(name: str, table: Mapping[str, Any], option: Field[Any], hint: Any) -> Range | Choices:
    unknown = set(table) - {"low", "high", "log", "points", "choices"}
    if unknown:
        raise UsageError(f"{name} has {min(unknown)!r} in the space; expected low, high, log and points, or choices")
    if "choices" in table:
        return _choices(option, hint, table["choices"])
    number = _unwrapped(hint)
    if number not in (int, float):
        raise UsageError(f"{name} is not a number, so it has no range; write {name}=a,b,c")
    if "low" not in table or "high" not in table:
        raise UsageError(f"{name} has no low and high in the space; {HOW}")
    low, high = (convert(option, hint, table[end]) for end in ("low", "high"))
    if low >= high:
        raise UsageError(f"{name} is {low:g}..{high:g} in the space, an empty range; expected the smaller number first")
    if table.get("log") and low <= 0:
        raise UsageError(f"{name} is {low:g}..{high:g}:log in the space; a logarithmic range starts above 0")
    points = table.get("points")
    if points is not None and (not isinstance(points, int) or not 2 <= points <= MOST_TRIALS):
        raise UsageError(f"{name} has {points} grid points in the space; expected a whole number of 2 to {MOST_TRIALS:,}")
    return Range(low, high, bool(table.get("log")), number is int, points)


def _choice(option: Field[Any], hint: Any, part: Any) -> Any:
    """One value, as Optuna keeps it: lists stay text such as 64x64."""
    kind = _unwrapped(hint)
    if kind is bool and isinstance(part, str) and part.lower() in ("true", "false"):
        part = part.lower() == "true"
    if typing.get_origin(kind) is tuple:
        sizes = "x".join(map(str, part)) if isinstance(part, list) else str(part).strip()
        convert(option, hint, sizes.replace("x", ","))
        return sizes or "none"
    return convert(option, hint, part.strip() if isinstance(part, str) else part)


def _unwrapped(hint: Any) -> Any:
    """The type behind `| None`."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        return next(a for a in typing.get_args(hint) if a is not types.NoneType)
    return str if typing.get_origin(hint) is Literal else hint


def options_of(params: Mapping[str, Any], kind: type[Any], antithetic: bool) -> dict[str, Any]:
    """A trial's parameters as options: lists from their text, an odd population rounded up where pairs are needed."""
    hints = typing.get_type_hints(kind)
    chosen = {
        name: value.replace("x", ",") if typing.get_origin(_unwrapped(hints[name])) is tuple else value
        for name, value in params.items()
    }
    if "population" in chosen and chosen.get("antithetic", antithetic):
        chosen["population"] += chosen["population"] % 2
    return chosen


def to_table(space: Space) -> dict[str, Any]:
    """The space as plain values, for files."""
    tables: dict[str, Any] = {}
    for name, part in space.items():
        if isinstance(part, Choices):
            tables[name] = {"choices": list(part.values)}
        else:
            tables[name] = {"low": part.low, "high": part.high, "log": part.log}
            if part.points is not None:
                tables[name]["points"] = part.points
    return tables


def from_table(tables: Mapping[str, Any], kind: type[Any]) -> Space:
    """The space that a file holds."""
    return {name: dimension(name, table, kind) for name, table in tables.items()}
