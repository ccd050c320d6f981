"""Start, join or continue a sweep, and run its trials until the limit is reached."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from esker.algorithms import registry
from esker.config.build import read_values
from esker.config.legacy import modernize
from esker.config.translate import names_in
from esker.errors import RunError, UsageError
from esker.runs.about import describe
from esker.runs.request import Request as RunRequest
from esker.runs.request import algorithm_of_preset, configure, strategy_named
from esker.runs.session import without_action_noise
from esker.sweep.display import Display
from esker.sweep.plan import PERSONAL, Budget, Pruner, Sampler, Storage, SweepPlan, plain
from esker.sweep.space import MOST_TRIALS, Dimension, Range, default_space, options_of, parse_space
from esker.sweep.study import Sweep, grid, require_optuna
from esker.sweep.summary import write_summary
from esker.sweep.trial import run_trial
from esker.worlds.environments import probed

FAILURES = 3  # trials in a row that may fail before a sweep gives up


@dataclass(frozen=True)
class Request:
    """A requested sweep. None: not given, so that joining takes the sweep's own value."""

    env: str | None
    name: str | None = None
    folder: str = "sweeps"
    algo: str | None = None
    preset: str | None = None
    config: str | None = None
    space: Sequence[str] = ()
    sampler: Sampler | None = None
    pruner: Pruner | None = None
    reduction: int | None = None
    min_budget: int | None = None
    storage: Storage | None = None
    seed: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    foreign: Mapping[str, Any] = field(default_factory=dict)  # options under other systems' names


def sweep(request: Request, trials: int, console: Console) -> Sweep:
    """Work on a sweep until it has `trials` trials, together with other processes. Wrong requests raise UsageError."""
    require_optuna()
    if not 1 <= trials <= MOST_TRIALS:
        raise UsageError(f"trials is {trials}; expected 1 to {MOST_TRIALS:,}")
    personal = {name: value for name, value in request.options.items() if name in PERSONAL}
    folder, plan, notices = open_plan(request)
    opened = Sweep(folder, plan)
    limit = min(trials, len(grid(opened.plan))) if opened.plan.sampler == "grid" else trials
    quiet = bool(personal.get("quiet"))
    for notice in () if quiet else notices:
        console.print(notice, highlight=False, soft_wrap=True, markup=False)
    with Display(opened, limit, console, quiet) as display:
        display.shown.update(notices)
        try:
            work(opened, limit, personal, display)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"interrupted; continue with: {_again(opened, trials)}") from None
        finally:
            write_summary(opened)
    return opened


def work(sweep: Sweep, limit: int, personal: Mapping[str, Any], display: Display) -> None:
    """Run trials until the limit is reached. Several failures in a row raise RunError."""
    failures = 0
    while True:
        with sweep.claim(limit) as trial:
            if trial is None:
                return
            error = run_trial(sweep, trial, personal, display.begin(trial.number))
        display.end(trial.number, error)
        write_summary(sweep)
        failures = failures + 1 if error else 0
        if failures == FAILURES:
            raise RunError(f"{FAILURES} trials in a row failed, the last one: {error}")


def open_plan(request: Request) -> tuple[Path, SweepPlan, list[str]]:
    """The folder and plan of a request: an existing sweep of that name, else a new one; and what was translated."""
    options, config, notices = _fixed_options(request)
    name = request.name or f"{config.env}-{config.algo}".replace("/", "-").replace(":", "-")
    if Path(name).name != name or name.startswith("."):
        raise UsageError(f"name is {name!r}; expected a plain name, which becomes a folder in --sweep-dir")
    folder = Path(request.folder) / name
    file = folder / "sweep.toml"
    if not file.exists():
        _publish(_new_plan(request, config, name, options), file)
    plan = SweepPlan.read(file)
    plan.refuse_strategies()
    plan.refuse_others(_asked(request, config, options))
    return folder, plan, notices


def _fixed_options(request: Request) -> tuple[dict[str, Any], Any, list[str]]:
    """The options that all trials share, a configuration that a trial could have, and what was translated."""
    swept = _first_values(request)
    try:
        asked = _configured(request, {})
    except UsageError:  # where the space holds what is missing, it is not
        asked = _configured(request, swept)
    for name, source in asked.derived.items():
        if source in swept and name not in swept:
            raise UsageError(f"{name} is computed from {source}, which is swept; give {name} itself, or sweep it too")
    said = {**asked.of_file, **modernize(request.options)[0]}
    fixed = [name for name in said if name not in PERSONAL]
    config, notices = asked.config, asked.notices
    if "action_noise" in asked.derived:
        with probed(asked.environment, config.step_timeout) as probe:
            config, silent = without_action_noise(asked, config, describe(probe))
        notices += silent
    return {name: plain(getattr(config, name)) for name in fixed}, config, notices


def _configured(request: Request, swept: Mapping[str, Any]) -> RunRequest:
    options, preset = {**swept, **request.options}, request.preset or "auto"
    return configure(request.env, options, algo=request.algo, preset=preset, config=request.config, foreign=request.foreign)


def _first_values(request: Request) -> dict[str, Any]:
    """One value for each swept option, so that a request without them can be checked."""
    if not request.space:
        return {}
    file = read_values(request.config) if request.config else {}
    named = names_in(file | dict(request.foreign)).algo or strategy_named(request.options, file)
    kind = registry.options_of(request.algo or named or algorithm_of_preset(request.preset) or "es")
    space = parse_space(request.space, kind)
    return options_of({name: _first(dimension) for name, dimension in space.items()}, kind, antithetic=True)


def _first(dimension: Dimension) -> Any:
    return dimension.low if isinstance(dimension, Range) else dimension.values[0]


def _asked(request: Request, config: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The part of the plan that a request gives."""
    names = ("algo", "preset", "sampler", "pruner", "reduction", "storage", "seed")
    said = {name: getattr(request, name) for name in names}
    asked = {"env": config.env} | {name: value for name, value in said.items() if value is not None}
    if options:
        asked["options"] = options
    if request.space:
        asked["space"] = parse_space(request.space, type(config))
    return asked


def _new_plan(request: Request, config: Any, name: str, options: dict[str, Any]) -> SweepPlan:
    kind = type(config)
    space = parse_space(request.space, kind) if request.space else default_space(config, options)
    for both in sorted(set(space) & set(options)):
        raise UsageError(f"{both} is both fixed and in the space; remove one of them")
    reduction = 3 if request.reduction is None else request.reduction
    if reduction < 2:
        raise UsageError(f"reduction is {reduction}; expected at least 2")
    plan = SweepPlan(
        name=name,
        env=config.env,
        algo=config.algo,
        preset=request.preset or "auto",
        space=space,
        budget=_budget(config, reduction, request.min_budget),
        sampler=request.sampler or "tpe",
        pruner=request.pruner or "hyperband",
        reduction=reduction,
        storage=request.storage or "journal",
        seed=request.seed or 0,
        options=options,
    )
    plan.refuse_strategies()
    if plan.sampler == "grid":
        grid(plan)  # raises for ranges without points, before anything is written
    return plan


def _budget(config: Any, reduction: int, minimum: int | None) -> Budget:
    """A trial's budget in the unit of its stop condition: steps, else a hybrid's own, else generations, else seconds."""
    unit, maximum = "seconds", config.wall_time
    if (generations := config.generation_limit) is not None:
        unit, maximum = "generations", generations
    if (training := config.training_limit) is not None:
        unit, maximum = "training_steps", training
    if config.steps is not None:
        unit, maximum = "env_steps", config.steps
    maximum = max(1, int(maximum))
    least = max(1, maximum // reduction**2) if minimum is None else minimum
    if not 1 <= least <= maximum:
        raise UsageError(
            f"min_budget is {least}; expected 1 to {maximum:,} {unit.replace('_', ' ')}, a trial's whole budget"
        )
    return Budget(unit, least, maximum)  # type: ignore[arg-type]


def _publish(plan: SweepPlan, file: Path) -> None:
    """Write the plan, unless another process was first; then that one counts."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".sweep.toml-{os.getpid()}")
        draft.write_text(plan.to_toml())
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    except OSError as error:
        raise UsageError(f"sweep folder {str(file.parent)!r} cannot be written: {error.strerror}") from error


def _again(sweep: Sweep, trials: int) -> str:
    where = "" if str(sweep.folder.parent) == "sweeps" else f" --sweep-dir {sweep.folder.parent}"
    return f"esker sweep {sweep.plan.env} --name {sweep.plan.name}{where} --trials {trials}"
