"""Callable packages: `esker.sweep(…)` and `esker.presets(…)` besides `esker.sweep.run` and `esker.presets.find`."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


def call_as(module: str, home: str, name: str) -> None:
    """Let calls of a module go to a function, which is imported when it is first called."""

    class Callable(types.ModuleType):
        """A module whose calls go to a function."""

        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return getattr(importlib.import_module(home), name)(*arguments, **options)

    sys.modules[module].__class__ = Callable
