"""The algorithms by name: ours, those that installed packages offer, and any by import path."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from esker.algorithms.algorithm import Algorithm
from esker.errors import UsageError
from esker.system.plugins import find_part

GROUP = "esker.algorithms"  # the entry-point group of other packages' algorithms
BUILT_IN = {
    "es": "esker.algorithms.es:ES",
    "pgpe": "esker.algorithms.other_strategies:PGPE",
    "snes": "esker.algorithms.other_strategies:SNES",
    "sep-cma": "esker.algorithms.other_strategies:SEP_CMA",
    "cma": "esker.algorithms.other_strategies:CMA",
    "td3": "esker.algorithms.td3:TD3",
    "cem-rl": "esker.algorithms.cem_rl:CEM_RL",
    "p-cem-rl": "esker.algorithms.cem_rl:P_CEM_RL",
    "acem-rl": "esker.algorithms.acem_rl:ACEM_RL",
    "one-plus-one": "esker.algorithms.one_plus_one:ONE_PLUS_ONE",
    "aes-rl": "esker.algorithms.aes_rl:AES_RL",
}
OF_PYTHON = {"function": "esker.functions.algorithm:FUNCTION"}  # `esker.Evolution`: no command begins such a run


def names() -> list[str]:
    """Every algorithm that has a name."""
    return [*BUILT_IN, *(entry.name for entry in entry_points(group=GROUP))]


def find(name: str) -> Algorithm:
    """The algorithm of a name or of a path `module:NAME`. An unknown one raises UsageError."""
    found = find_part("algorithm", name, OF_PYTHON if name in OF_PYTHON else BUILT_IN, GROUP)
    if not isinstance(found, Algorithm):
        raise UsageError(f"algorithm {name!r} is a {type(found).__name__}; expected an esker.algorithms.algorithm.Algorithm")
    return found


def options_of(name: str) -> type[Any]:
    """The configuration class of an algorithm."""
    return find(name).config
