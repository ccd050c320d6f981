"""One option: a field with a default, a help text and bounds."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def option(
    default: Any,
    help: str,
    *,
    above: float | None = None,
    low: float | None = None,
    high: float | None = None,
    group: str | None = None,
    repeatable: bool = False,
) -> Any:
    """A field with what its flag needs: help and bounds (`above` is exclusive, `low` and `high` inclusive).

    `group` is the entry-point group whose names are accepted besides those of a literal. A `repeatable` flag gives one item
    of a list each time; others give the whole list, with commas.
    """
    metadata = {"help": help, "above": above, "low": low, "high": high, "group": group, "repeatable": repeatable}
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)
