"""One door for both families of algorithms: evolution strategies, whose generations are facts, and the hybrids."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from esker import assemble, assemble_hybrids
from esker.address import Purpose
from esker.algorithms import hybrid_loop, loop
from esker.algorithms.es import EvolutionStrategy
from esker.algorithms.loop import Outcome, Row
from esker.config import ESConfig
from esker.runs import snapshots
from esker.runs.checkpoints import Snapshot
from esker.runs.folder import RunFolder
from esker.tasks.environments import Environment
from esker.tasks.episodes import Episodes


def build(config: Any, environment: Environment, about: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Task, initial state and noise table of a configuration. What does not fit the environment raises UsageError."""
    if isinstance(config, ESConfig):
        task = assemble.build_task(config, environment, about)
        return task, *assemble.build_state(config, task)
    hybrid = assemble_hybrids.build_task(config, environment, about)
    return hybrid, assemble_hybrids.build_state(config, hybrid), None


def catch_up(folder: RunFolder, state: Any) -> list[str]:
    """Bring a state to what its folder holds committed; answers what had to be mended."""
    if isinstance(state, EvolutionStrategy):
        return loop.catch_up(folder, state)
    return hybrid_loop.catch_up(folder, state)


@contextlib.contextmanager
def open_engine(folder: RunFolder, state: Any, task: Any, table: Any) -> Iterator[Any]:
    """Where the work of a run happens, closed whatever happens."""
    config = state.config
    if isinstance(config, ESConfig):
        with assemble.open_engine(task, config.workers, table, config.step_timeout) as engine:
            yield engine
    else:
        with assemble_hybrids.open_parts(config, task, folder.path, state.progress.training_steps) as parts:
            yield parts


def train(folder: RunFolder, state: Any, engine: Any, seen: Callable[[Row], bool]) -> Outcome:
    """Go on to a stop condition."""
    if isinstance(state, EvolutionStrategy):
        return loop.train(folder, state, engine, seen)
    return hybrid_loop.train(folder, state, engine, seen)


def find_snapshot(folder: RunFolder, config: Any, checkpoint: str | int) -> tuple[Snapshot, list[str]] | None:
    """A snapshot of a run that commits snapshots; None where facts can recompute it."""
    return None if isinstance(config, ESConfig) else snapshots.find(folder, checkpoint)


def acting_task(config: Any, environment: Environment, about: dict[str, Any]) -> Episodes:
    """The task whose centre is a run's policy: its network and head, for `load` and `eval`."""
    if isinstance(config, ESConfig):
        return assemble.build_task(config, environment, about)
    task = assemble_hybrids.build_task(config, environment, about)
    return Episodes(
        environment=environment,
        network=task.network,
        head=task.head,
        seed=config.seed,
        normalize=False,
        center_purpose=Purpose.EVALUATION,
        fresh_environments=config.fresh_environments,
    )
