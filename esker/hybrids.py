"""The algorithms with gradients, as the API needs them: begin, catch up, open, train, find a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esker.algorithms.hybrid_loop import catch_up, train
from esker.assemble_hybrids import build_state, build_task, open_parts
from esker.runs.folder import RunFolder
from esker.runs.snapshots import find as find_snapshot
from esker.tasks.environments import Environment

__all__ = ["begin", "catch_up", "find_snapshot", "opener", "train"]


def begin(config: Any, environment: Environment, about: dict[str, Any]) -> Any:
    """The initial state of a run. What does not fit the environment raises UsageError."""
    return build_state(config, build_task(config, environment, about))


def opener(folder: RunFolder, state: Any) -> Callable[[], Any]:
    """A function that starts the workers of a run."""
    return lambda: open_parts(state.config, state.task, folder.path, state.progress.training_steps)
