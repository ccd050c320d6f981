"""A strategy whose centre moves by facts: what evolution by episodes and evolution by a reward have in common.

The state moves by facts alone, so training and replaying are the same code: a resumed run cannot differ from one that
never stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from esker.algorithms.facts import Facts
from esker.algorithms.loop import Lap, Record
from esker.algorithms.observer import Returns, Row
from esker.algorithms.progress import CERTAIN, Progress, usable
from esker.algorithms.snapshot import Snapshot
from esker.errors import RunError
from esker.tasks.task import Job

if TYPE_CHECKING:
    from esker.strategies.strategy import Strategy, Update


class Evaluates(Protocol):
    """An engine, as a state's jobs and plans need it."""

    def evaluate(self, job: Job, plan: Any) -> None: ...


class Center:
    """A strategy and the counters of its run, moved by facts."""

    certain = CERTAIN  # episodes by which a new best centre is judged

    def __init__(self, config: Any, strategy: Strategy) -> None:
        self.config = config
        self.strategy = strategy
        self.progress = Progress()
        self.notices: list[str] = []
        self.whole = True  # not between two generations: neither half moved nor moved by what is not committed yet

    @property
    def generation(self) -> int:
        """The generation that is to be evaluated next."""
        return self.strategy.generation

    def job(self) -> Job:
        """What workers must know of this generation."""
        raise NotImplementedError

    def plan(self) -> Any:
        """The evaluations that make this generation."""
        raise NotImplementedError

    def facts(self, plan: Any, seconds: float) -> Facts:
        """What leaves a complete generation."""
        raise NotImplementedError

    def advance(self, engine: Evaluates, record: Record, lap: Lap) -> tuple[Row, Returns]:
        """One generation: ask, evaluate, tell, commit. What cannot move the state to finite parameters is not committed."""
        job, plan = self.job(), self.plan()
        engine.evaluate(job, plan)
        facts = self.facts(plan, lap())
        best = copied(self.snapshot()) if self.improves(facts) else None
        self.whole = False
        row = self.move(facts)
        record.commit(facts)  # from here on the generation is a fact
        self.whole = True
        if best is not None:
            record.checkpoint(best, best=True)
        return row, facts.returns

    def replay(self, facts: Facts, record: Record | None = None) -> Row:
        """Let a committed generation move the state; returns its row. The best centre so far is kept in `record`."""
        if record is not None and self.improves(facts):
            record.checkpoint(self.snapshot(), best=True)
        elif record is not None and self._steadies(facts) and record.stored(self.generation) is None:
            record.checkpoint(self.snapshot())
        return self.move(facts)

    def _steadies(self, facts: Facts) -> bool:
        """Whether this generation's centre is the best so far over more episodes, and has a snapshot."""
        return self._has_snapshot and self.progress.steadies(facts.center_returns.tolist())

    @property
    def _has_snapshot(self) -> bool:
        """Whether the generation to be evaluated next has a snapshot that can be a candidate when the run ends."""
        return self.certain == CERTAIN and self.generation % int(self.config.checkpoint_every) == 0

    def improves(self, facts: Facts) -> bool:
        """Whether this generation's centre is to be kept as the best so far."""
        return self.progress.improves(facts.center_returns.tolist(), self.certain)

    def move(self, facts: Facts) -> Row:
        """Tell the strategy, and count."""
        progress = self.progress
        generation, returns = int(facts.generation[0]), facts.center_returns.tolist()
        progress.count_center(self.config, generation, returns, self.certain, self._has_snapshot)
        update = self.strategy.tell(facts.fitness)
        if not math.isfinite(update.center_norm):
            raise RunError(
                f"generation {int(facts.generation[0])} makes the parameters infinite or NaN (lr {update.lr:g}, sigma "
                f"{update.sigma:g}); start again with a smaller learning rate"
            )
        progress.env_steps += int(facts.lengths.sum() + facts.center_lengths.sum())
        progress.episodes += facts.lengths.size + facts.center_lengths.size
        progress.discarded_steps += int(facts.discarded_steps[0])
        progress.wall_time += float(facts.seconds[0])
        return journal_row(progress, facts, update)

    def snapshot(self) -> Snapshot:
        """Everything that is state, ready to run the next generation."""
        arrays, values = flatten(self.strategy.state_dict())
        del values["generation"]  # which a snapshot has already
        return Snapshot(self.generation, arrays, {**values, **vars(self.progress)})

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        values = {**snapshot.values, "generation": snapshot.generation}
        self.strategy.load_state_dict(unflatten(self.strategy.state_dict(), snapshot.arrays, values))
        self.progress = Progress(**{name: values[name] for name in vars(Progress()) if name in values})

    def conclude(self, engine: Evaluates, record: Record) -> Row | None:
        """The last centre is evaluated only in the next generation, if there is one."""
        return None

    def close(self) -> None:
        """Nothing is shared with workers."""


def copied(snapshot: Snapshot) -> Snapshot:
    """A snapshot that stays as it is while its state moves on."""
    return replace(snapshot, arrays={name: array.copy() for name, array in snapshot.arrays.items()})


def flatten(state: dict[str, Any], prefix: str = "") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A strategy's state as arrays and plain values; the names of nested ones are joined by dots."""
    arrays: dict[str, np.ndarray] = {}
    values: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, dict):
            inner, plain = flatten(value, f"{prefix}{name}.")
            arrays |= inner
            values |= plain
        elif hasattr(value, "numpy"):
            arrays[prefix + name] = value.cpu().numpy()
        else:
            values[prefix + name] = value
    return arrays, values


def unflatten(state: dict[str, Any], arrays: dict[str, np.ndarray], values: dict[str, Any]) -> dict[str, Any]:
    """The state that `flatten` took apart; what else there is under names that `state` does not have is left alone."""
    import torch

    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    result: dict[str, Any] = {name: {} for name, value in state.items() if isinstance(value, dict)}
    for path, value in {**values, **tensors}.items():
        *outer, name = path.split(".")
        if (outer or [name])[0] in state:
            _nested(result, outer)[name] = value
    return result


def _nested(state: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    for name in names:
        state = state.setdefault(name, {})
    return state


def journal_row(progress: Progress, facts: Facts, update: Update) -> Row:
    """A generation as the journal has it."""
    returns = facts.returns[np.isfinite(facts.returns)]
    center = usable(facts.center_returns.tolist())
    center_return = float(np.mean(center)) if center else None
    seconds = float(facts.seconds[0])
    steps = int(facts.lengths.sum() + facts.center_lengths.sum())
    # Members whose episodes were cut cannot be compared with the centre, whose episodes are whole.
    cut = progress.episode_cap is not None and bool((facts.lengths >= progress.episode_cap).any())
    return {
        "generation": int(facts.generation[0]),
        "env_steps": progress.env_steps,
        "episodes": progress.episodes,
        "wall_time": progress.wall_time,
        "return_mean": float(returns.mean()),
        "return_max": float(returns.max()),
        "return_min": float(returns.min()),
        "return_std": float(returns.std()),
        "center_return": center_return,
        "center_rank": None if cut or center_return is None else 1 + int((returns > center_return).sum()),
        "members": len(facts.fitness),
        "failed_members": int(np.isneginf(facts.fitness).sum()),
        "episode_length_mean": float(facts.lengths.mean()),
        "episode_cap": progress.episode_cap,
        "steps_per_second": steps / seconds if seconds > 0 else None,
        "sigma": update.sigma,
        "lr": update.lr,
        "gradient_norm": update.gradient_norm,
        "update_ratio": update.update_norm / update.center_norm if update.center_norm else 0.0,
        "weight_entropy": update.weight_entropy,
        "best_return": progress.best_return,
        "goal_streak": progress.goal_streak,
        "discarded_steps": progress.discarded_steps,
    }
