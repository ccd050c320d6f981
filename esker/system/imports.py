"""Objects by import path: `module:name`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from esker.errors import UsageError, named_line, nearest


def import_callable(path: str, what: str) -> Callable[..., Any]:
    """The callable behind `module:name`. What does not import or is none raises UsageError."""
    module, _, attribute = path.partition(":")
    if not attribute:
        raise UsageError(f"{what} is {path!r}; expected module:name")
    if "<" in path:  # how esker names an object without a path; importing even its module could run a stranger's code
        raise UsageError(f"{what} {path!r} names an object that only its own process has; give it in Python")
    found = getattr(import_module(module, f"{what} {path!r}"), attribute, None)
    if not callable(found):
        close = nearest(attribute, vars(sys.modules[module]))
        raise UsageError(f"{what} {path!r}: {module!r} has no callable {attribute!r}{close}")
    return found


def path_of(thing: Any) -> str | None:
    """The path `module:name` by which another process can import a thing; None where there is none."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not module or not name or module == "__main__" or getattr(sys.modules.get(module), name, None) is not thing:
        return None
    return f"{module}:{name}"


def import_module(name: str, what: str) -> Any:
    """The module of this name. One that does not import raises UsageError."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{what}: cannot import {name!r} ({error}); is it installed or in the current folder?") from error
    except (TypeError, ValueError) as error:
        if name.startswith(".") or not name:
            raise UsageError(f"{what}: {name!r} is not a module name; expected module:name") from error
        raise UsageError(f"{what}: importing {name!r} fails: {named_line(error)}") from error
    except Exception as error:  # a user's module may raise anything
        raise UsageError(f"{what}: importing {name!r} fails: {named_line(error)}") from error
