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
    "compare": "esker.tools.compare",
    "evaluate": "esker.runs.loading",
    "make_env": "esker.runs.loading",
    "Run": "esker.api",
    "Evolution": "esker.evolution",
    "EvolutionModule": "esker.interfaces.evolution_module",
    "CMA": "esker.strategies.cma",
    "ClipUp": "esker.strategies.clipup",
    "OpenAIES": "esker.strategies.openai_es",
    "PGPE": "esker.strategies.pgpe",
    "Restarts": "esker.strategies.restarts",
    "SNES": "esker.strategies.snes",
    "SepCMA": "esker.strategies.sep_cma",
    "minimize": "esker.functions.minimize",
    "WorkServer": "esker.engines.remote.server",
    "Worker": "esker.engines.remote.worker",
    "UsageError": "esker.errors",
    "RunError": "esker.errors",
}
_CALLABLE = ("presets", "sweep")  # packages that can be called
__all__ = [
    "CMA",
    "PGPE",
    "SNES",
    "ClipUp",
    "Evolution",
    "EvolutionModule",
    "OpenAIES",
    "Restarts",
    "Run",
    "RunError",
    "SepCMA",
    "UsageError",
    "WorkServer",
    "Worker",
    "__version__",
    "compare",
    "evaluate",
    "load",
    "make_env",
    "minimize",
    "presets",
    "resume",
    "sweep",
    "train",
]

if TYPE_CHECKING:
    from esker.api import Run, resume, train
    from esker.engines.remote.server import WorkServer
    from esker.engines.remote.worker import Worker
    from esker.errors import RunError, UsageError
    from esker.evolution import Evolution
    from esker.functions.minimize import minimize
    from esker.interfaces.evolution_module import EvolutionModule
    from esker.presets import presets_for as presets
    from esker.runs.loading import evaluate, load, make_env
    from esker.strategies.clipup import ClipUp
    from esker.strategies.cma import CMA
    from esker.strategies.openai_es import OpenAIES
    from esker.strategies.pgpe import PGPE
    from esker.strategies.restarts import Restarts
    from esker.strategies.sep_cma import SepCMA
    from esker.strategies.snes import SNES
    from esker.sweep.python import sweep
    from esker.tools.compare import compare


def __getattr__(name: str) -> Any:
    if name in _CALLABLE:
        return importlib.import_module(f"esker.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'esker' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
