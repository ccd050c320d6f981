"""Horizontal lines to compare curves with: published numbers, thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from esker.errors import UsageError

METAVAR = "[ENV:]Y[=NAME]"


@dataclass(frozen=True)
class Reference:
    """A line in one environment's panel or in all."""

    value: float
    name: str = ""
    env: str | None = None


def parse_reference(text: str) -> Reference:
    """`6000`, `6000=published` or `Humanoid-v5:6000=published`. Anything else raises UsageError."""
    start, _, name = text.partition("=")
    env, _, value = start.rpartition(":")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"reference is {text!r}; expected a number, as 6000 or Humanoid-v5:6000=published")
    return Reference(number, name, env or None)
