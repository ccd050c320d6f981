"""EnvPool against Gymnasium: steps per second of the same engine, network and population, two workers each."""

from __future__ import annotations

import statistics
import time
from typing import Any

from esker.api import configure
from esker.runs.assembly import build_state, build_task, describe, open_engine
from esker.tools.bench import Measurement
from esker.worlds.environments import silence
from esker.worlds.reference import collect_reference

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
            for name, (state, engine, _) in opened.items():
                began, plan = time.perf_counter(), state.plan()
                engine.evaluate(state.job(), plan)
                steps = sum(result.length for result in plan.results.values())
                if number:
                    rates[name].append(steps / (time.perf_counter() - began))
    finally:
        for _, _, context in opened.values():
            context.__exit__(None, None, None)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    detail = {f"{name} steps/s": f"{value:,.0f}" for name, value in medians.items()}
    return Measurement(f"envpool/{env}", medians["envpool"] / medians["gymnasium"], "× Gymnasium", "> 1", detail)


def _open(env: str, options: dict[str, Any]) -> tuple[Any, Any, Any]:
    config, environment, _ = configure(env, {"center_episodes": 1, **options}, preset=None)
    with silence():
        probe = environment.make()
        about = describe(probe)
    task = build_task(config, environment, about)
    if getattr(task.network, "normalized", False):
        task = task.with_reference(collect_reference(probe, config.reference_frames, config.seed))
    state, table = build_state(config, task)
    context = open_engine(task, WORKERS, table)
    return state, context.__enter__(), context
