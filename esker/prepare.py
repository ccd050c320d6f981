"""A run made ready, whatever its algorithm: what `train`, `resume`, `load` and `evaluate` need of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from esker import assemble, assemble_hybrids
from esker.address import Purpose
from esker.algorithms import hybrid_loop, loop
from esker.algorithms.loop import Outcome, Row
from esker.config import ESConfig
from esker.runs import snapshots
from esker.runs.checkpoints import Snapshot
from esker.runs.folder import RunFolder
from esker.tasks.environments import Environment
from esker.tasks.episodes import Episodes


class Prepared(Protocol):
    """A run that can begin, go on and be saved."""

    config: Any

    def snapshot(self) -> Snapshot: ...

    def catch_up(self, folder: RunFolder) -> list[str]:
        """Bring the state to what is committed; answers notices."""
        ...

    def run(self, folder: RunFolder, seen: Callable[[Row], bool]) -> Outcome:
        """Go on to a stop condition."""
        ...

    def save(self, folder: RunFolder) -> None:
        """Leave a snapshot that a resume begins from."""
        ...

    def close(self) -> None: ...


def prepare(config: Any, environment: Environment, about: dict[str, Any]) -> Prepared:
    """The run of a configuration. What does not fit the environment raises UsageError."""
    kind = PreparedES if isinstance(config, ESConfig) else PreparedHybrid
    return kind(config, environment, about)


class PreparedES:
    """Evolution strategies: members are addressed, generations are facts."""

    def __init__(self, config: ESConfig, environment: Environment, about: dict[str, Any]) -> None:
        self.config = config
        self.task = assemble.build_task(config, environment, about)
        self.state, self.table = assemble.build_state(config, self.task)

    def snapshot(self) -> Snapshot:
        """The state, ready to run the next generation."""
        return self.state.snapshot()

    def catch_up(self, folder: RunFolder) -> list[str]:
        """Newest intact snapshot, then replayed facts."""
        return loop.catch_up(folder, self.state)

    def run(self, folder: RunFolder, seen: Callable[[Row], bool]) -> Outcome:
        """Evaluate generation after generation."""
        with assemble.open_engine(self.task, self.config.workers, self.table, self.config.step_timeout) as engine:
            return loop.train(folder, self.state, engine, seen)

    def save(self, folder: RunFolder) -> None:
        """A snapshot where the facts end."""
        folder.checkpoint(self.state.snapshot(), latest=True)
        folder.prune(self.config.keep)

    def close(self) -> None:
        """Free the noise table."""
        if self.table is not None:
            self.table.close()


class PreparedHybrid:
    """Algorithms with gradients: generations are committed as snapshots."""

    def __init__(self, config: Any, environment: Environment, about: dict[str, Any]) -> None:
        self.config = config
        self.task = assemble_hybrids.build_task(config, environment, about)
        self.state = assemble_hybrids.build_state(config, self.task)

    def snapshot(self) -> Snapshot:
        """The state, ready to run the next generation."""
        return self.state.snapshot()

    def catch_up(self, folder: RunFolder) -> list[str]:
        """The newest intact snapshot."""
        return hybrid_loop.catch_up(folder, self.state)

    def run(self, folder: RunFolder, seen: Callable[[Row], bool]) -> Outcome:
        """Train generation after generation."""
        steps = self.state.progress.training_steps
        with assemble_hybrids.open_parts(self.config, self.task, folder.path, steps) as parts:
            outcome = hybrid_loop.train(folder, self.state, parts, seen)
            hybrid_loop.commit(folder, self.state, parts)
            return outcome

    def save(self, folder: RunFolder) -> None:
        """Nothing: a generation that was cut short is no state to continue from, and the last one is committed."""

    def close(self) -> None:
        """Nothing is held."""


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
