"""The algorithms with gradients, as the API needs them: begin, catch up, open, train, find a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esker.algorithms.hybrid_loop import catch_up, train
from esker.algorithms.hybrid_parts import build_state, build_task, learns_in_loop, loop_device, open_parts, processes
from esker.config.hybrids import check_device
from esker.runs.folder import RunFolder
from esker.runs.snapshots import find as find_snapshot
from esker.worlds.environments import Environment

__all__ = ["actors", "begin", "catch_up", "critic_apart", "find_snapshot", "learns_in_loop", "opener", "train"]


def begin(config: Any, environment: Environment, about: dict[str, Any]) -> Any:
    """The initial state of a run. What does not fit the environment or this machine raises UsageError."""
    if loop_device(config) != "cpu":
        check_device(loop_device(config))
    return build_state(config, build_task(config, environment, about))


def actors(config: Any) -> int:
    """How many worker processes a configuration wants for its individuals."""
    return processes(config)["actor"]


def critic_apart(config: Any) -> bool:
    """Whether the critic trains in a process of its own."""
    return processes(config)["critic"] > 0


def opener(folder: RunFolder, state: Any, note: Callable[[str], None]) -> Callable[[], Any]:
    """A function that starts the workers of a run; `note` is told what is worth knowing of them."""
    return lambda: open_parts(state.config, state.task, folder, state.progress.training_steps, note)
