"""What a sweep found: sweep.json for the report, best.toml as a preset."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from esker.algorithms import registry
from esker.config.build import default_of
from esker.config.logs import LogOptions
from esker.config.options import RunOptions
from esker.presets import for_environment
from esker.runs.folder import RunFolder
from esker.runs.listing import last_row
from esker.sweep.plan import PERSONAL, plain
from esker.sweep.space import to_table
from esker.sweep.study import Sweep

if TYPE_CHECKING:
    import optuna

FORMAT = 1
NOT_IN_PRESET = {f.name for group in (RunOptions, LogOptions) for f in fields(group)} | PERSONAL | {"env", "algo"}


def best_trial(sweep: Sweep) -> optuna.trial.FrozenTrial | None:
    """The completed trial of the highest value; among equals, the one that needed the fewest steps."""
    from optuna.trial import TrialState

    done = [trial for trial in sweep.trials() if trial.state == TrialState.COMPLETE]
    return max(done, key=lambda t: (t.value, -_row(sweep, t).get("env_steps", 0)), default=None)


def write_summary(sweep: Sweep) -> None:
    """Write sweep.json, and best.toml where a trial has completed; each whole or not at all."""
    best = best_trial(sweep)
    plan = sweep.plan
    values = {
        "format": FORMAT,
        "name": plan.name,
        "env": plan.env,
        "algo": plan.algo,
        "sampler": plan.sampler,
        "pruner": plan.pruner,
        "objective": "mean centre return of the last 5 generations",
        "budget": vars(plan.budget),
        "options": plan.options,
        "space": to_table(plan.space),
        "trials": [_trial(sweep, trial) for trial in sweep.trials()],
        "best": None if best is None else best.number,
        "importance": importance(sweep),
    }
    _replace(sweep.folder / "sweep.json", json.dumps(values, indent=1) + "\n")
    if best is not None:
        _replace(sweep.folder / "best.toml", preset_of(sweep, best))


def preset_of(sweep: Sweep, trial: optuna.trial.FrozenTrial) -> str:
    """A trial's configuration as a preset: what differs from a default or an older preset, except where and how it ran."""
    config = RunFolder.open(sweep.run_folder(trial.number)).config(registry.options_of)
    other = for_environment(sweep.plan.env, sweep.plan.algo)
    named = set(other.options) if other else set()
    options = {
        option.name: plain(getattr(config, option.name))
        for option in fields(config)
        if option.name not in NOT_IN_PRESET and (option.name in named or getattr(config, option.name) != default_of(option))
    }
    about = f"found by sweep {sweep.plan.name}: centre return {trial.value:,.1f}, best of {len(sweep.trials())} trials"
    return tomli_w.dumps({"env": sweep.plan.env, "algo": sweep.plan.algo, "about": about, "options": options})


def importance(sweep: Sweep) -> dict[str, float]:
    """How much each option mattered among completed trials (PED-ANOVA); nothing while too few are completed."""
    import optuna

    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = optuna.importance.get_param_importances(sweep.study, evaluator=evaluator)
    except (ValueError, RuntimeError):
        return {}
    return {name: float(value) for name, value in found.items()}


def _trial(sweep: Sweep, trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
    row = _row(sweep, trial)
    return {
        "number": trial.number,
        "state": trial.state.name.lower(),
        "value": trial.value if trial.value is not None else last_value(trial),
        "params": trial.params,
        "generation": row.get("generation"),
        "env_steps": row.get("env_steps"),
        "wall_time": row.get("wall_time"),
        "run": str(sweep.run_folder(trial.number).relative_to(sweep.folder)),
        "reports": [[spent, value] for spent, value in sorted(trial.intermediate_values.items())],
        "error": trial.user_attrs.get("error"),
    }


def last_value(trial: optuna.trial.FrozenTrial) -> float | None:
    """The last value that a trial reported."""
    return trial.intermediate_values[trial.last_step] if trial.last_step is not None else None


def _row(sweep: Sweep, trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
    return last_row(sweep.run_folder(trial.number) / "journal.jsonl")


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
