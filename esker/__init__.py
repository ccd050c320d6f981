"""esker: evolution strategies for people who train policies.

`import esker` is light: what a name needs is imported when the name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "train": "esker.api",
    "resume": "esker.api",
    "load": "esker.runs.loading",
    "evaluate": "esker.runs.loading",
    "Run": "esker.runs.loading",
    "Evolution": "esker.evolution",
    "EvolutionModule": "esker.functions.evolution_module",
    "OpenAIES": "esker.strategies.openai_es",
    "UsageError": "esker.errors",
    "RunError": "esker.errors",
}
__all__ = [
    "Evolution",
    "EvolutionModule",
    "OpenAIES",
    "Run",
    "RunError",
    "UsageError",
    "__version__",
    "evaluate",
    "load",
    "resume",
    "train",
]

if TYPE_CHECKING:
    from esker.api import resume, train
    from esker.errors import RunError, UsageError
    from esker.evolution import Evolution
    from esker.functions.evolution_module import EvolutionModule
    from esker.runs.loading import Run, evaluate, load
    from esker.strategies.openai_es import OpenAIES


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'esker' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
