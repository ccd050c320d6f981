"""What the algorithms with gradients share: counters, rows of the journal, snapshots, evaluation of the centre.

Their individuals are trained, not addressed, so a generation is committed as a snapshot: the whole state, and how
many rows of the replay file belong to it. What came after the newest intact snapshot is trained again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from esker.algorithms.loop import Lap, Record, conclude
from esker.algorithms.observer import Row
from esker.algorithms.progress import Progress
from esker.algorithms.snapshot import Snapshot
from esker.config.hybrids import HybridConfig
from esker.engines.pool import Pool, ask_all
from esker.learners.replay import Replay
from esker.noise.address import Purpose, episode_seed, key
from esker.tasks.hybrid import HybridTask
from esker.tasks.requests import Arrays, Reply, Rollout, Trial, TrialResult


@dataclass
class HybridProgress(Progress):
    """The counters of a run; part of its state."""

    generation: int = 0
    training_steps: int = 0
    critic_updates: int = 0
    actor_updates: int = 0
    last_steps: int = 0
    warm_episodes: int = 0

    def values(self) -> dict[str, Any]:
        """Everything but the generation, which a snapshot names already."""
        return {name: value for name, value in vars(self).items() if name != "generation"}

    def count(self, tried: TrialResult) -> None:
        """Count episodes that do not enter the replay buffer."""
        self.env_steps += sum(tried.lengths)
        self.episodes += len(tried.lengths)


@dataclass
class Parts:
    """What a hybrid works with while it runs; `aside` takes replies that belong to something in the background."""

    pool: Pool
    replay: Replay
    aside: Callable[[int, Reply], None] | None = None

    def ask(self, requests: Sequence[Trial]) -> list[TrialResult]:
        """The results of some individuals, in their order, by any number of actors."""
        replies = ask_all(self.pool, requests, self.aside)
        return [reply for reply in replies if isinstance(reply, TrialResult)]

    def close(self) -> None:
        """End the workers, and free the replay memory."""
        self.pool.close()
        self.replay.rows.close()


class Hybrid:
    """The state of a run, which advances generation by generation and is saved between them.

    A generation that is cut short leaves no state to continue from: `snapshot` is always that of the last whole one.
    """

    def __init__(self, config: HybridConfig, task: HybridTask) -> None:
        self.config: Any = config
        self.task = task
        self.progress = HybridProgress()
        self.notices: list[str] = []
        self.sums: tuple[list[int], int] = ([], 0)  # checksums of the replay file's rows, and of how many

    @property
    def generation(self) -> int:
        """The generation that is to be run next."""
        return self.progress.generation

    @property
    def warm_until(self) -> int:
        """The training steps up to which random play fills the replay buffer: at first, and where it was not kept."""
        begin = self.task.replay_begin
        return begin + max(int(self.config.initial_steps), 1 if begin else 0)

    @property
    def spent(self) -> bool:
        """Whether a limit of steps is reached, so that no further episode begins."""
        config, progress = self.config, self.progress
        return progress.training_steps >= (config.training_limit or math.inf) or progress.env_steps >= (
            config.steps or math.inf
        )

    def advance(self, engine: Parts, record: Record, lap: Lap) -> tuple[Row, None]:
        """Run one generation; its transitions are on the disk before a snapshot counts them."""
        before, steps = self.snapshot(), self.progress.env_steps
        row = self.evolve(engine)
        self.progress.generation += 1
        seconds = lap()
        self.progress.wall_time += seconds
        if self.config.replay_file:
            count = self.progress.training_steps
            self.sums = engine.replay.rows.sums(count, *self.sums), count
        self.seal()
        engine.replay.rows.sync()
        row["wall_time"] = self.progress.wall_time
        row["steps_per_second"] = (self.progress.env_steps - steps) / seconds
        if row.pop("improved"):
            record.checkpoint(before, best=True)
        return row, None

    def evolve(self, parts: Parts) -> Row:
        """Run one generation; returns its row of the journal."""
        raise NotImplementedError

    def conclude(self, engine: Parts, record: Record) -> Row | None:
        """Evaluate the policy that the run ended with, as the next generation would."""
        center = np.array(self.snapshot().arrays["center"])
        seen = evaluate_center(engine, self.task, center, self.generation, self.config.center_episodes)
        return conclude(record, self, seen.returns, lambda *wanted: self._play(engine, *wanted))

    def _play(self, engine: Parts, snapshot: Snapshot, episodes: int, first: int) -> list[float]:
        """The returns of a snapshot's policy, in episodes of generations to come: no choice was made by them."""
        center = np.array(snapshot.arrays["center"])
        return evaluate_center(engine, self.task, center, self.generation + 1 + first, episodes).returns

    def arrays(self) -> Arrays:
        """Everything that moves; `center` is the policy."""
        raise NotImplementedError

    def load(self, arrays: Arrays, values: dict[str, Any]) -> None:
        """Continue from `arrays` and `values`."""
        raise NotImplementedError

    def values(self) -> dict[str, Any]:
        """What else moves, as plain values."""
        return {}

    def seal(self) -> None:
        """A generation is whole: from here a run can be continued."""
        values = {"progress": self.progress.values(), "state": self.values(), "replay": list(self.sums)}
        self._whole = Snapshot(self.generation, self.arrays(), values)

    def snapshot(self) -> Snapshot:
        """The state after the last whole generation."""
        return self._whole

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self.progress = HybridProgress(**snapshot.values["progress"], generation=snapshot.generation)
        self.load(snapshot.arrays, snapshot.values["state"])
        sums, rows = snapshot.values.get("replay", ([], 0))
        self.sums = list(sums), rows
        self.seal()

    def close(self) -> None:
        """Nothing is shared with workers but the replay, which is theirs."""


def reset_seed(task: HybridTask, purpose: Purpose, *where: int) -> int:
    """The seed of an episode."""
    return episode_seed(task.seed, purpose, *where)


def learning_key(task: HybridTask, purpose: Purpose, *where: int) -> int:
    """What decides the batches of a stretch of training."""
    return key(task.seed, purpose, *where)


def center_trial(task: HybridTask, center: np.ndarray, generation: int, episodes: int) -> Trial:
    """Evaluate the centre over some episodes, outside the replay buffer."""
    seeds = tuple(reset_seed(task, Purpose.CENTER_EPISODE, generation, episode) for episode in range(episodes))
    return Trial(f"{task.environment.name}, generation {generation}, the centre", Rollout(seeds, center, record=False))


def evaluate_center(parts: Parts, task: HybridTask, center: np.ndarray, generation: int, episodes: int) -> TrialResult:
    """The centre's returns, its episodes shared out among the actors."""
    whole = center_trial(task, center, generation, episodes)
    each = [Trial(whole.name, Rollout((seed,), center, record=False)) for seed in whole.episodes.seeds]
    tried = parts.ask(each)
    return TrialResult(center, [t.returns[0] for t in tried], [t.lengths[0] for t in tried], None)


def warm_up(parts: Parts, state: Hybrid, wave: int) -> None:
    """Fill the replay buffer with random play, a fixed number of episodes at a time so that workers do not matter."""
    task, progress = state.task, state.progress
    while progress.training_steps < state.warm_until and not state.spent:
        first = progress.warm_episodes
        trials = [random_trial(task, first + number) for number in range(wave)]
        for tried in parts.ask(trials):
            store(parts, progress, tried)
        progress.warm_episodes += wave
        progress.last_steps = progress.training_steps - task.replay_begin


def random_trial(task: HybridTask, number: int) -> Trial:
    """One episode of random actions."""
    seed = reset_seed(task, Purpose.WARM_UP, number)
    return Trial(f"{task.environment.name}, warm-up episode {number}, seed {seed}", Rollout((seed,), None))


def store(parts: Parts, progress: HybridProgress, tried: TrialResult) -> None:
    """Put an individual's transitions into the replay buffer, and count them."""
    assert tried.rows is not None
    parts.replay.append(tried.rows)
    progress.training_steps += len(tried.rows)
    progress.env_steps += len(tried.rows)
    progress.episodes += len(tried.lengths)


def journal_row(
    config: Any, progress: HybridProgress, returns: Sequence[float], lengths: Sequence[int], center: TrialResult, **more: Any
) -> Row:
    """The row of the generation that just ended; `improved` says whether its centre is the best so far."""
    improved = progress.improves(center.returns)
    has_snapshot = progress.generation % config.checkpoint_every == 0
    progress.count_center(config, progress.generation, center.returns, snapshot=has_snapshot)
    values = np.array(returns, dtype=np.float64)
    finite = values[np.isfinite(values)]
    return {
        "generation": progress.generation,
        "env_steps": progress.env_steps,
        "training_steps": progress.training_steps,
        "episodes": progress.episodes,
        "return_mean": float(finite.mean()) if len(finite) else None,
        "return_max": float(finite.max()) if len(finite) else None,
        "return_min": float(finite.min()) if len(finite) else None,
        "return_std": float(finite.std()) if len(finite) else None,
        "center_return": center.fitness,
        "center_rank": 1 + int((finite > center.fitness).sum()),
        "members": len(values),
        "episode_length_mean": float(np.mean(lengths)) if len(lengths) else None,
        "critic_updates": progress.critic_updates,
        "actor_updates": progress.actor_updates,
        "best_return": progress.best_return,
        "goal_streak": progress.goal_streak,
        "discarded_steps": progress.discarded_steps,
        "improved": improved,
        **more,
    }


def sigma_of(var: np.ndarray) -> float:
    """The root of the mean variance: how far individuals are from the mean."""
    return math.sqrt(float(np.mean(var)))


def mean_of(values: Sequence[float]) -> float | None:
    """The mean, or None of nothing."""
    return float(np.mean(values)) if values else None
