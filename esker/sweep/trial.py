"""One trial: an ordinary run, watched by the pruner, resumed where an earlier process left it."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esker import api
from esker.algorithms.observer import Observer, Row
from esker.errors import RunError, UsageError, first_line
from esker.runs.folder import RunFolder
from esker.sweep.plan import Budget
from esker.sweep.space import options_of
from esker.sweep.study import Sweep

if TYPE_CHECKING:
    import optuna

WINDOW = 5  # generations whose centre returns are averaged into a trial's value
REPORTS = 100  # most reports of a trial to the study


class Watch:
    """The `on_generation` of a trial: reports the centre's return, and stops the trial if it is pruned."""

    def __init__(self, trial: optuna.trial.Trial, budget: Budget, run: Path) -> None:
        self.trial = trial
        self.budget = budget
        self.journal = RunFolder(run)
        self.returns: list[float] = []
        self.rows = 0
        self.last = 0
        self.known = set(trial.study.trials[trial.number].intermediate_values)
        self.pruned = False

    @property
    def value(self) -> float | None:
        """The mean centre return of the last generations."""
        return statistics.fmean(self.returns[-WINDOW:]) if self.returns else None

    def __call__(self, row: Row) -> str | None:
        if row["generation"] > self.rows:  # generations that an earlier process committed
            self.catch_up(row["generation"])
        return self._take(row)

    def catch_up(self, until: int | None = None) -> str | None:
        """Read the rows that are already in the journal, and make the reports that a killed process did not."""
        stop = None
        for row in self.journal.rows()[self.rows : until]:
            stop = self._take(row) or stop
        return stop

    def _take(self, row: Row) -> str | None:
        self.rows += 1
        if row["center_return"] is not None:
            self.returns.append(row["center_return"])
        spent = self.budget.spent(row)
        if self.value is None or spent < self.last + max(1, self.budget.maximum // REPORTS):
            return None
        self.last = spent
        if spent in self.known:
            return None
        self.trial.report(self.value, spent)
        self.pruned = self.pruned or self.trial.should_prune()
        return f"pruned after {self.budget.text(spent)}" if self.pruned else None


def run_trial(sweep: Sweep, trial: optuna.trial.Trial, personal: Mapping[str, Any], observer: Observer) -> str | None:
    """Run a claimed trial to its end and tell the study; returns why it failed, if it did."""
    from optuna.trial import TrialState

    path = sweep.run_folder(trial.number)
    if "wandb" in str(personal.get("log", "")):
        personal = {"wandb_group": sweep.plan.name, "wandb_name": f"{sweep.plan.name}-{path.name}", **personal}
    try:
        watch = _train(sweep, trial, path, personal, observer)
    except (RunError, UsageError) as error:
        trial.set_user_attr("error", first_line(error))
        sweep.study.tell(trial, state=TrialState.FAIL)
        return first_line(error)
    if watch.pruned:
        sweep.study.tell(trial, state=TrialState.PRUNED)
    elif watch.value is None:
        sweep.study.tell(trial, state=TrialState.FAIL)
        return "the centre was never evaluated"
    else:
        sweep.study.tell(trial, watch.value)
    return None


def _train(sweep: Sweep, trial: optuna.trial.Trial, path: Path, personal: Mapping[str, Any], observer: Observer) -> Watch:
    plan = sweep.plan
    watch = Watch(trial, plan.budget, path)
    if (path / "config.toml").exists() and (path / "about.json").exists():
        if not watch.catch_up():
            api.resume(path, observer=observer, on_generation=watch, **personal)
            watch.catch_up()
        return watch
    shutil.rmtree(path, ignore_errors=True)  # a process that was killed before its run began
    params = options_of(trial.params, plan.kind, plan.options.get("antithetic", True))
    options = {**plan.options, **personal, **params, "run_dir": str(path)}
    api.train(plan.env, algo=plan.algo, preset=plan.preset, observer=observer, on_generation=watch, **options)
    return watch
