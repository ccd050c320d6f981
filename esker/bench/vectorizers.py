"""EnvPool against Gymnasium: steps per second of the same engine, network and population, two workers each."""

from __future__ import annotations

import statistics
import time
from typing import Any

from esker.algorithms.es import EvolutionStrategy
from esker.bench.measurement import Measurement
from esker.bench.prepared import prepared
from esker.engines.engine import Engine
from esker.engines.open import local_engine

WORKERS = 2
CASES: dict[str, dict[str, Any]] = {
    "LunarLander-v3": {"population": 128, "noise": "counter"},
    "ALE/Pong-v5": {"population": 32, "noise": "counter", "network": "conv-lstm", "max_episode_steps": 300},
}


def measure(quick: bool) -> list[Measurement]:
    """Whole generations of both, alternated; nothing where EnvPool is not installed."""
    try:
        import envpool  # noqa: F401
    except ImportError:
        return []
    return [_case(env, options, 2 if quick else 5) for env, options in CASES.items()]


def _case(env: str, options: dict[str, Any], slices: int) -> Measurement:
    rates: dict[str, list[float]] = {"gymnasium": [], "envpool": []}
    opened = {name: _open(env, options | {"vectorizer": name}) for name in rates}
    try:
        for number in range(slices + 1):  # the first slice warms up
            for name, (state, engine) in opened.items():
                began, plan = time.perf_counter(), state.plan()
                engine.evaluate(state.job(), plan)
                steps = sum(result.length for result in plan.results.values())
                if number:
                    rates[name].append(steps / (time.perf_counter() - began))
    finally:
        for _, engine in opened.values():
            engine.close()
    medians = {name: statistics.median(values) for name, values in rates.items()}
    detail = {f"{name} steps/s": f"{value:,.0f}" for name, value in medians.items()}
    return Measurement(f"envpool/{env}", medians["envpool"] / medians["gymnasium"], "× Gymnasium", "> 1", detail)


def _open(env: str, options: dict[str, Any]) -> tuple[EvolutionStrategy, Engine]:
    state, _ = prepared(env, {"center_episodes": 1, **options})
    return state, local_engine(state.task, WORKERS, state.table)
