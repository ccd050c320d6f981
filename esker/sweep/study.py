"""Optuna's half of a sweep: where trials are kept, how options are suggested, which trials are stopped early."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esker.errors import UsageError
from esker.sweep.plan import SweepPlan
from esker.sweep.space import MOST_TRIALS, Choices, Dimension

if TYPE_CHECKING:
    import optuna


def require_optuna() -> None:
    """Silence Optuna's log. Raises UsageError if Optuna is not installed."""
    try:
        import optuna
    except ImportError as error:
        raise UsageError("esker sweep needs Optuna, which is not installed; pip install 'esker[sweep]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)


class Sweep:
    """A sweep folder and its study. Any number of processes may hold one at the same time."""

    def __init__(self, folder: Path, plan: SweepPlan) -> None:
        import optuna

        self.folder = folder
        self.plan = plan
        self.trials_folder = folder / "trials"
        self.trials_folder.mkdir(parents=True, exist_ok=True)
        with self.locked():
            self.study = optuna.create_study(
                study_name=plan.name,
                storage=_storage(folder, plan),
                pruner=_pruner(plan),
                direction="maximize",
                load_if_exists=True,
            )
            if plan.sampler == "grid":
                for point in grid(plan):
                    self.study.enqueue_trial(point, skip_if_exists=True)
        self.distributions = {name: _distribution(part) for name, part in plan.space.items()}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """A lock on the sweep across processes, held while trials are counted and added."""
        with (self.folder / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def trials(self) -> list[optuna.trial.FrozenTrial]:
        """Every trial that was begun, by number."""
        from optuna.trial import TrialState

        found = self.study.get_trials(deepcopy=False)
        return [trial for trial in found if trial.state != TrialState.WAITING]

    def run_folder(self, number: int) -> Path:
        """The run folder of a trial."""
        return self.trials_folder / f"{number:04d}"

    @contextlib.contextmanager
    def claim(self, limit: int) -> Iterator[optuna.trial.Trial | None]:
        """A trial for this process to run: one whose process died, else a new one, while there are fewer than `limit`.

        A claim is a lock that is released when its process dies, so a killed trial is continued by the next process.
        """
        while True:
            for trial in self._unfinished():
                with (self.trials_folder / f".{trial.number:04d}.lock").open("a") as file:
                    if _try_lock(file) and self._is_unfinished(trial.number):
                        yield self._handle(trial)
                        return
            if not self._ask(limit):
                yield None
                return

    def _ask(self, limit: int) -> bool:
        """Add a trial. What is suggested depends on the seed, the trial's number and the results so far, on nothing else."""
        from optuna.trial import TrialState

        with self.locked():
            begun = len(self.trials())
            if begun >= limit:
                return False
            waiting = self.study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
            if self.plan.sampler == "grid" and not waiting:
                return False
            self.study.sampler = _sampler(self.plan, begun)
            self.study.ask(self.distributions)
            return True

    def _unfinished(self) -> list[optuna.trial.FrozenTrial]:
        from optuna.trial import TrialState

        return self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))

    def _is_unfinished(self, number: int) -> bool:
        return any(trial.number == number for trial in self._unfinished())

    def _handle(self, trial: optuna.trial.FrozenTrial) -> optuna.trial.Trial:
        import optuna

        return optuna.trial.Trial(self.study, trial._trial_id)


def grid(plan: SweepPlan) -> list[dict[str, Any]]:
    """Every point of the space's grid. A range without a number of points raises UsageError."""
    axes: dict[str, list[Any]] = {}
    for name, part in plan.space.items():
        axes[name] = part.grid(name)
        points = math.prod(map(len, axes.values()))
        if points > MOST_TRIALS:
            raise UsageError(f"the grid has at least {points:,} points, each a trial; expected at most {MOST_TRIALS:,}")
    return [dict(zip(axes, point, strict=True)) for point in itertools.product(*axes.values())]


def _try_lock(file: Any) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _storage(folder: Path, plan: SweepPlan) -> Any:
    import optuna

    if plan.storage == "sqlite":
        return f"sqlite:///{(folder / 'study.sqlite').resolve()}"
    from optuna.storages.journal import JournalFileBackend

    return optuna.storages.JournalStorage(JournalFileBackend(str(folder / "study.journal")))


def _sampler(plan: SweepPlan, number: int) -> Any:
    import numpy as np
    import optuna

    seed = int(np.random.SeedSequence([plan.seed, number]).generate_state(1)[0])
    if plan.sampler == "tpe":
        return optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    return optuna.samplers.RandomSampler(seed=seed)


def _pruner(plan: SweepPlan) -> Any:
    import optuna

    budget = plan.budget
    if plan.pruner == "hyperband":
        return optuna.pruners.HyperbandPruner(
            min_resource=budget.minimum, max_resource=budget.maximum, reduction_factor=plan.reduction
        )
    if plan.pruner == "asha":
        return optuna.pruners.SuccessiveHalvingPruner(min_resource=budget.minimum, reduction_factor=plan.reduction)
    return optuna.pruners.NopPruner()


def _distribution(part: Dimension) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(part, Choices):
        return CategoricalDistribution(part.values)
    if part.whole:
        return IntDistribution(int(part.low), int(part.high), log=part.log)
    return FloatDistribution(part.low, part.high, log=part.log)
