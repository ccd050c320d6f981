"""A run's parts without a run: what a benchmark of generations needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from esker.algorithms.es import EvolutionStrategy, start
from esker.runs.about import describe
from esker.runs.request import configure
from esker.worlds.environments import Environment, silence


def prepared(env: str, options: Mapping[str, Any], environment: Environment | None = None) -> tuple[EvolutionStrategy, Any]:
    """The state before the first generation, and what its environment is like; `environment` may stand in for `env`."""
    request = configure(env, options, preset=None)
    place = environment or request.environment
    with silence():
        probe = place.make()
        about = describe(probe)
        config, _ = request.algorithm.complete(request.config, place, probe)
    return start(replace(config, workers=None), place, about, new=True), about
