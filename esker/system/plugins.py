"""Parts that others bring: found by name among ours, by entry point, or by import path `module:NAME`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from esker.errors import UsageError, nearest
from esker.system.imports import import_module


def find_part(what: str, name: str, built_in: Mapping[str, str], group: str) -> Any:
    """The part of this name: ours, one that an installed package offers in `group`, or `module:NAME`. Raises UsageError."""
    path = name if ":" in name else built_in.get(name)
    if path is not None:
        return _import(path, what)
    offered = {entry.name: entry for entry in entry_points(group=group)}
    if name in offered:
        return _import(offered[name].value, what)
    known = [*built_in, *offered]
    raise UsageError(f"unknown {what} {name!r}{nearest(name, known)}; expected one of {', '.join(known)}, or module:NAME")


def find_class(what: str, name: str, built_in: Mapping[str, str], group: str, methods: Sequence[str]) -> Any:
    """The class of this name, as in `find_part`. One that lacks a method raises UsageError."""
    found = find_part(what, name, built_in, group)
    missing = [method for method in methods if not callable(getattr(found, method, None))]
    if not callable(found) or missing:
        lacks = f"it has no {', '.join(missing)}" if missing else "it cannot be called"
        raise UsageError(f"{what} {name!r} does not fit: {lacks}; see docs/extending.md")
    return found


def _import(path: str, what: str) -> Any:
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise UsageError(f"{what} is {path!r}; expected module:NAME")
    found = import_module(module, f"{what} {path!r}")
    if not hasattr(found, attribute):
        raise UsageError(f"{what} {path!r}: {module!r} has no {attribute!r}{nearest(attribute, vars(found))}")
    return getattr(found, attribute)
