"""What translations of other systems' keys share: values under esker's names, notices, and checks of single values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from esker.errors import UsageError


class Resolved(Protocol):
    """What an option will be when all layers are known: the flags', else the file's own, else the preset's or default."""

    def __call__(self, name: str, own: Mapping[str, Any], otherwise: Any = None) -> Any: ...


@dataclass
class Translation:
    """esker's values; what they were computed from, if from another option; and notices for the user."""

    values: dict[str, Any]
    notices: list[str] = field(default_factory=list)
    derived: dict[str, str] = field(default_factory=dict)
    needless: list[str] = field(default_factory=list)

    def put(self, system: str, name: str, value: Any, target: str, translated: Any) -> None:
        """Take a value under its new name."""
        self.values[target] = translated
        self.notices.append(f"{system}'s {name} = {text(value)} is {target} = {text(translated)}")

    def derive(self, target: str, value: Any, source: str) -> None:
        """Take a value that was computed from another option."""
        self.values[target] = value
        self.derived[target] = source


def number(name: str, value: Any, *, above: float = -math.inf, low: float = -math.inf, high: float = math.inf) -> float:
    """A number within bounds. Anything else raises UsageError."""
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if math.isnan(found) or math.isinf(found) or found <= above or not low <= found <= high:
        limits = [f"above {above:g}" if above > -math.inf else "", f"at least {low:g}" if low > -math.inf else ""]
        limits += [f"at most {high:g}" if high < math.inf else ""]
        raise UsageError(
            f"{name} is {value!r}; expected {' '.join(['a number', ' and '.join(filter(None, limits))]).strip()}"
        )
    return found


def same_meaning(values: Mapping[str, Any], theirs: str, ours: str) -> None:
    """Refuse a file with different values under two names of one option. Raises UsageError."""
    if ours in values and values[ours] is not None and values[ours] != values[theirs]:
        raise UsageError(
            f"{theirs} is {values[theirs]!r} and {ours} is {values[ours]!r}, which mean the same; give one of them"
        )


def text(value: Any) -> str:
    """A value for a notice."""
    return str(value).lower() if isinstance(value, bool) else str(value)
