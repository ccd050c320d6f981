"""The public API as plain values: python tests/public.py > tests/data/public.json"""

from __future__ import annotations

import inspect
import json
from typing import Any

import esker
from esker.commands.every import COMMANDS
from esker.presets import presets_for
from esker.sweep.python import sweep

FLAGS = """population sigma lr optimizer weight-decay lr-decay sigma-decay shaping antithetic episodes-per-member min-steps
normalize-observations action-noise action-mode network hidden activation max-episode-steps adaptive-cap center-
episodes noise table-size slots checkpoint-every keep log quiet device init-from env-kwargs wrapper vectorizer
strategy world run-dir seed workers generations steps goal patience engine address"""


def parameters(function: Any) -> list[str]:
    """What a callable takes; those without a default are marked."""
    found = []
    for parameter in inspect.signature(function).parameters.values():
        needed = parameter.default is parameter.empty and not parameter.kind.name.startswith("VAR")
        found.append(f"{parameter.name} required" if needed else parameter.name)
    return [name for name in found if name != "self required"]


def surface(thing: Any) -> dict[str, list[str]]:
    """A callable's parameters; of a class also those of its public methods, and its properties, as far as they are ours."""
    if not inspect.isclass(thing):
        return {"": parameters(thing)}
    if issubclass(thing, Exception):
        return {}
    parts = {
        name: part
        for kind in reversed(thing.__mro__)
        if kind.__module__.startswith("esker")
        for name, part in vars(kind).items()
    }
    named = {name: getattr(thing, name) for name in parts if not name.startswith("_")}
    return {"": parameters(thing)} | {
        name: parameters(part) if inspect.isroutine(part) else [] for name, part in named.items()
    }


def public() -> dict[str, Any]:
    """Everything that a patch or minor version removes nothing of."""
    called = {"presets": presets_for, "sweep": sweep}  # packages whose calls go to a function
    names = {name: surface(called.get(name) or getattr(esker, name)) for name in esker.__all__ if name != "__version__"}
    return {"names": names, "commands": sorted(COMMANDS), "flags": FLAGS.split()}


if __name__ == "__main__":
    print(json.dumps(public(), indent=1))
