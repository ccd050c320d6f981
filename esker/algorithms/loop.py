"""The loop of every algorithm: a generation, its row of the journal, sometimes a snapshot, until a stop condition."""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from esker.algorithms.facts import Facts
from esker.algorithms.observer import Returns, Row
from esker.algorithms.progress import CERTAIN, STEADY, Progress, reading
from esker.algorithms.snapshot import Snapshot
from esker.algorithms.stalls import StallDetector
from esker.config.options import StopOptions
from esker.system import clock
from esker.system.words import count

Lap = Callable[[], float]  # seconds since it was last called
Play = Callable[[Snapshot, int, int], list[float]]
"""play(snapshot, episodes, first) -> the returns of its centre; `first` chooses among the episodes to come."""
JUDGED = 0.02  # of a run's episodes: at most so many are played again when it ends


class Record(Protocol):
    """Where a run is committed: a run folder, or memory."""

    def commit(self, facts: Facts) -> None: ...
    def write_row(self, row: Row) -> None: ...
    def write_final(self, reading: Row) -> None:
        """Keep what was seen when the run ended, and let `best` name the checkpoint that it chose."""
        ...

    def concluded(self, generation: int) -> bool:
        """Whether that is the generation with which it ended, and its best was chosen then."""
        ...

    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None: ...
    def prune(self, keep: int | None, spared: Collection[int] = ()) -> None: ...
    def stored(self, generation: int) -> Snapshot | None: ...


class State(Protocol):
    """An algorithm's state, as the loop sees it."""

    config: Any
    progress: Any
    notices: list[str]  # notices about how it starts

    @property
    def generation(self) -> int:
        """The generation that is run next."""
        ...

    def advance(self, engine: Any, record: Record, lap: Lap) -> tuple[Row, Returns | None]:
        """Run one generation; returns its row of the journal, and the returns of its members where it has them."""
        ...

    def conclude(self, engine: Any, record: Record) -> Row | None:
        """The run is done: choose and evaluate its best, in which the last centre takes part; returns what was seen."""
        ...

    def snapshot(self) -> Snapshot:
        """The state after the last whole generation."""
        ...

    def restore(self, snapshot: Snapshot) -> None: ...
    def close(self) -> None:
        """Free what it shares with workers."""
        ...


class OnRow(Protocol):
    """Called with each row, and the returns of its members if there are any; returns why to stop, or None."""

    def __call__(self, row: Row, returns: Returns | None = None) -> str | None: ...


@dataclass(frozen=True)
class Outcome:
    """Why training stopped."""

    reason: str
    goal_reached: bool = False


def train(
    record: Record,
    state: State,
    engine: Any,
    on_row: OnRow,
    stalls: StallDetector | None = None,
    on_end: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run generations until a stop condition; `on_row` is called with each row and may stop the run.

    `stalls` sees every row; its warning becomes the row's `note`. `on_end` is called when all generations are done, before
    the best is chosen; a run that has chosen already, and goes on for no further generation, keeps its choice.
    """
    config, lap = state.config, stopwatch()
    while (outcome := stop_reason(config, state.progress, state.generation)) is None:
        row, returns = state.advance(engine, record, lap)
        if stalls is not None and (note := stalls.see(row)):
            row.setdefault("note", note)
        record.write_row(row)
        if state.generation % config.checkpoint_every == 0:
            record.checkpoint(state.snapshot(), latest=True)
            record.prune(config.keep, state.progress.candidates)
        if reason := on_row(row, returns):
            return Outcome(reason)
    on_end()
    if not record.concluded(state.generation) and (reading := state.conclude(engine, record)) is not None:
        record.write_final(reading)
    return outcome


def conclude(
    record: Record, state: State, returns: Sequence[float], play: Play, few: int = CERTAIN, share: float = JUDGED
) -> Row:
    """Choose the best of the run and evaluate it; returns what was seen of it and of the last centre.

    A mean over 20 episodes does not show a fall that happens once in ten, and among hundreds of such means one is lucky. So
    the candidates (the best by 20 episodes, the best by 100 and the last centre) play the same new episodes, as many as a
    `share` of the run's episodes allows, and the highest mean is the best; a short run takes the best by 20. What the winner
    reaches is then seen in a `few` episodes by which nothing was chosen.
    Nothing of this is committed: a resumed run sees the same episodes as those of its next generations.
    """
    judged: Progress = copy.deepcopy(state.progress)
    judged.count_center(state.config, state.generation, returns)
    last = state.snapshot()
    center = reading(returns)
    seen = None if math.isnan(center) else center
    row: Row = {"generation": state.generation, "center_return": seen, "best_return": judged.best_return}
    if judged.best_generation is None:
        return row
    row["best_generation"] = judged.best_generation
    snapshots = {last.generation: last}
    for generation in sorted((judged.candidates | state.progress.candidates) - {last.generation}):
        if (snapshot := record.stored(generation)) is not None:
            snapshots[generation] = snapshot
    played = 0
    if means := _race(snapshots, int(share * state.progress.episodes), play):
        winner = max(means, key=lambda generation: (means[generation], generation))
        played = STEADY
        row |= {"best_generation": winner, "best_return": means[winner]}
        row["candidates"] = {str(generation): mean for generation, mean in sorted(means.items())}
    best = snapshots.get(row["best_generation"])
    found = [] if best is None else [value for value in play(best, few, played) if math.isfinite(value)]
    if row["best_generation"] == last.generation:
        record.checkpoint(last, best=True)
    return row | {"best_mean": statistics.fmean(found), "best_episodes": len(found)} if found else row


def _race(snapshots: dict[int, Snapshot], allowed: int, play: Play) -> dict[int, float]:
    """The mean of each candidate over the same episodes; none where one is alone or too few episodes are allowed.

    An episode that fails for all of them counts for none; who fails where another does not is no candidate any more.
    """
    episodes = min(STEADY, allowed // len(snapshots))
    if len(snapshots) < 2 or episodes < CERTAIN:
        return {}
    returns = {generation: play(snapshot, episodes, 0) for generation, snapshot in snapshots.items()}
    usable = [n for n, values in enumerate(zip(*returns.values(), strict=True)) if any(map(math.isfinite, values))]
    if not usable:
        return {}
    means = {generation: statistics.fmean(values[n] for n in usable) for generation, values in returns.items()}
    return {generation: mean for generation, mean in means.items() if math.isfinite(mean)}


def stopwatch() -> Lap:
    """A function that returns the seconds since it was last called."""
    mark = clock.monotonic()

    def lap() -> float:
        nonlocal mark
        mark, before = clock.monotonic(), mark
        return mark - before

    return lap


def stop_reason(config: StopOptions, progress: Progress, generation: int) -> Outcome | None:
    """Why a run is done, if it is."""
    if config.goal is not None and config.patience is not None and progress.goal_streak >= config.patience:
        return Outcome(f"goal reached: {_goal_text(config)}", True)
    if generation >= (config.generation_limit or math.inf):
        return Outcome(f"{count(generation, 'generation')} done")
    if progress.env_steps >= (config.steps or math.inf):
        return Outcome(f"{progress.env_steps:,} environment steps done")
    if config.training_limit is not None and progress.training_steps >= config.training_limit:
        done = progress.training_steps
        return Outcome(f"{count(done, 'training step')} done{_beyond(done, config.training_limit)}")
    if progress.wall_time >= (config.wall_time or math.inf):
        return Outcome(f"{progress.wall_time:.0f} s of training done")
    return None


def _goal_text(config: StopOptions) -> str:
    times = f", {config.patience:,} times in a row" if config.patience != 1 else ""
    return f"centre return ≥ {config.goal:g}{times}"


def _beyond(steps: int, limit: int) -> str:
    return f" (limit {limit:,}: episodes under way are finished)" if steps > limit else ""


def stop_text(config: StopOptions) -> str:
    """The stop conditions as text."""
    limit, training = config.generation_limit, config.training_limit
    parts = [count(limit, "generation") if limit else "", count(training, "training step") if training else ""]
    parts += [f"{config.steps:,} steps" if config.steps else ""]
    parts += [f"{config.wall_time:g} s of training" if config.wall_time else ""]
    if config.goal is not None:
        parts.append(_goal_text(config))
    return " or ".join(filter(None, parts))
