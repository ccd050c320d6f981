"""`esker.sweep(…)`: a sweep from Python, and what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from rich.console import Console

from esker.config.keywords import TrainOptions
from esker.logs import html
from esker.logs.report.data import read_sweeps, report_data
from esker.logs.report.page import write_page
from esker.runs.reading import read_runs
from esker.sweep.plan import Pruner, Sampler, Storage
from esker.sweep.run import Request
from esker.sweep.run import sweep as run_sweep
from esker.sweep.summary import best_trial, last_value

Space = Mapping[str, Any] | Sequence[str]


class SweepOptions(TrainOptions, total=False):
    """What `esker sweep` takes besides the options of every trial."""

    algo: str | None
    preset: str | None
    config: str | None
    sampler: Sampler | None
    pruner: Pruner | None
    reduction: int | None
    min_budget: int | None
    storage: Storage | None


@dataclass(frozen=True)
class Trial:
    """One trial: the options that it was given and the return that it reached."""

    number: int
    state: str
    value: float | None
    params: dict[str, Any]
    path: Path


@dataclass(frozen=True)
class SweepResult:
    """What a sweep found. `preset` is a file that `train(preset=…)` takes; None while no trial has completed."""

    folder: Path
    trials: tuple[Trial, ...]
    best: Trial | None

    @property
    def preset(self) -> Path | None:
        """The best trial's options."""
        return self.folder / "best.toml" if self.best is not None else None

    def report(self, output: str | Path | None = None) -> Path:
        """Write the page that `esker report` writes of a sweep; by default inside its folder."""
        target = Path(output) if output is not None else self.folder / "report.html"
        write_page(report_data(read_runs([self.folder]), sweeps=read_sweeps([self.folder])), target)
        return target

    def _repr_html_(self) -> str:
        names = list(self.trials[0].params) if self.trials else []
        ranked = sorted(self.trials, key=lambda trial: -(trial.value if trial.value is not None else float("-inf")))
        rows = [
            (
                str(one.number),
                one.state,
                "–" if one.value is None else f"{one.value:,.1f}",
                *(str(one.params.get(n)) for n in names),
            )
            for one in ranked
        ]
        return html.table(("trial", "state", "return", *names), rows)


def sweep(
    env: str,
    *,
    space: Space = (),
    trials: int = 50,
    name: str | None = None,
    sweep_dir: str | Path = "sweeps",
    sweep_seed: int | None = None,
    **arguments: Unpack[SweepOptions],
) -> SweepResult:
    """Search for good options, as `esker sweep` does; the same call again continues.

    `space` is `{"lr": "0.001..0.1:log", "hidden": [(64, 64), (16,)]}` or the strings of the command line. `algo`, `preset`,
    `config`, `sampler`, `pruner`, `reduction`, `min_budget` and `storage` are those of `esker sweep`; all other arguments
    are options of every trial. A wrong request raises UsageError.
    """
    own = SweepOptions.__annotations__.keys() - TrainOptions.__annotations__.keys()
    given: dict[str, Any] = {key: value for key, value in arguments.items() if key in own}
    options = {key: value for key, value in arguments.items() if key not in own}
    request = Request(env, name=name, folder=str(sweep_dir), space=_lines(space), seed=sweep_seed, options=options, **given)
    done = run_sweep(request, trials, Console(markup=False, emoji=False))
    found = tuple(
        Trial(
            trial.number,
            trial.state.name.lower(),
            trial.value if trial.value is not None else last_value(trial),
            dict(trial.params),
            done.run_folder(trial.number),
        )
        for trial in done.trials()
    )
    best = best_trial(done)
    return SweepResult(done.folder, found, next((one for one in found if best and one.number == best.number), None))


def _lines(space: Space) -> list[str]:
    if not isinstance(space, Mapping):
        return list(space)
    return [f"{name}={','.join(map(_choice, part)) if _is_list(part) else part}" for name, part in space.items()]


def _choice(value: Any) -> str:
    """A choice as the command line has it: (64, 64) is 64x64."""
    return ("x".join(map(str, value)) or "none") if _is_list(value) else str(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
