"""Runs by configuration: the seeds of each together, copies of one run counted once, and short names for what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from esker.config.environment import CapGrowth
from esker.config.resume import RESUMABLE
from esker.errors import UsageError
from esker.presets import load_all
from esker.runs.reading import RunData

# Options that do not decide what a run computes: runs that differ only in these are one configuration.
INCIDENTAL = RESUMABLE | {"seed", "run_dir"}
# Options that people name a configuration by, in this order; the others follow as they are declared.
TELLING = ("strategy", "network", "hidden", "population", "sigma", "lr", "optimizer", "shaping", "noise")
MOST_SHOWN = 2  # options in a name, if that is enough to distinguish configurations


@dataclass(frozen=True)
class Group:
    """Runs of one configuration that differ in their seed only."""

    env: str
    label: str
    runs: tuple[RunData, ...]

    @cached_property
    def distinct(self) -> tuple[RunData, ...]:
        """The runs that have begun, without copies: of runs with equal seeds and equal beginnings, the longest."""
        kept: list[RunData] = []
        for run in sorted(self.runs, key=lambda run: -len(run.rows)):
            if run.rows and not any(_is_copy(run, other) for other in kept):
                kept.append(run)
        return tuple(run for run in self.runs if any(run is one for one in kept))

    @property
    def seeds(self) -> int:
        """How many seeds the distinct runs have."""
        return len({run.seed for run in self.distinct})

    def count_text(self) -> str:
        """`5 seeds`; where runs share a seed and are not copies, `5 runs of 3 seeds`."""
        runs = len(self.distinct)
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        return seeds if runs == self.seeds else f"{runs} runs of {seeds}"

    def notes(self) -> list[str]:
        """What a reader must know: which runs are copies, and which share a seed without being copies."""
        notes, about = [], f"{self.env}, {self.label}"
        copies = [run for run in self.runs if run.rows and not any(run is one for one in self.distinct)]
        if copies:
            seeds = ", ".join(str(seed) for seed in sorted({run.seed for run in copies}))
            notes.append(f"{about}: {len(copies)} of {len(self.runs)} runs repeat seed {seeds}; each seed counts once")
        if len(self.distinct) != self.seeds:
            notes.append(f"{about}: equal seeds gave different results, so these are {self.count_text()}")
        return notes


def group_runs(runs: Sequence[RunData], source: Callable[[RunData], Any] | None = None) -> list[Group]:
    """The runs by configuration, in the order in which each first appears; labels say how groups differ.

    With `source`, runs from different sources stay apart.
    """
    by_key: dict[str, list[RunData]] = {}
    for run in runs:
        key = (source(run) if source else None, sorted(_deciding(run).items()))
        by_key.setdefault(repr(key), []).append(run)
    members = list(by_key.values())
    groups = []
    for some in members:
        rivals = [other[0] for other in members if _rivals(other[0], some[0])]
        label = _preset(some[0], rivals) or _label(some[0], rivals)
        groups.append(Group(some[0].env, label, tuple(some)))
    return groups


def labelled(groups: Sequence[Group], labels: Sequence[str]) -> list[Group]:
    """Groups under the user's names, in order. A wrong number of names raises UsageError."""
    if len(labels) != len(groups):
        found = ", ".join(repr(group.label) for group in groups)
        raise UsageError(f"{len(labels)} labels for {len(groups)} configurations ({found}); give --label once for each")
    return [replace(group, label=label) for group, label in zip(groups, labels, strict=True)]


def differences(runs: Sequence[RunData]) -> dict[str, list[Any]]:
    """The options in which runs differ, each with every run's value; an option a run does not know is None."""
    names = dict.fromkeys(name for run in runs for name in run.config)
    table = {name: [run.config.get(name) for run in runs] for name in names if name != "run_dir"}
    return {name: values for name, values in table.items() if any(value != values[0] for value in values)}


def _is_copy(run: RunData, other: RunData) -> bool:
    """Whether a run repeats the beginning of another, bit for bit."""
    if run.seed != other.seed:
        return False
    names = ("env_steps", "center_return", "return_mean")
    return all(row.get(name) == same.get(name) for row, same in zip(run.rows, other.rows, strict=False) for name in names)


def _deciding(run: RunData) -> dict[str, Any]:
    return {name: value for name, value in run.config.items() if name not in INCIDENTAL}


def _rivals(run: RunData, other: RunData) -> bool:
    """Whether two runs need names that distinguish their options."""
    return (run.env, run.config["algo"]) == (other.env, other.config["algo"])


def _preset(run: RunData, rivals: Sequence[RunData]) -> str | None:
    """The preset that a configuration equals, if that distinguishes it from its rivals."""
    if len(rivals) < 2:
        return None
    known = [one for one in load_all().values() if (one.env, one.algo) == (run.env, run.config["algo"])]
    for preset in sorted(known, key=lambda one: -len(one.options)):
        options = {name: value for name, value in preset.options.items() if name not in INCIDENTAL}
        same = [other for other in rivals if all(as_written(other.config.get(name)) == options[name] for name in options)]
        if same == [run]:
            return preset.name
    return None


def as_written(value: Any) -> Any:
    """An option's value as a preset's file has it."""
    if isinstance(value, CapGrowth):
        return vars(value)
    return list(value) if isinstance(value, tuple) else value


def _label(run: RunData, rivals: Sequence[RunData]) -> str:
    """The algorithm, and as many differing options as it takes to distinguish this configuration from its rivals."""
    differ = [name for name in differences(rivals) if name not in INCIDENTAL]
    differ.sort(key=lambda name: TELLING.index(name) if name in TELLING else len(TELLING))
    shown = differ
    for count in range(MOST_SHOWN, len(differ)):
        names = [_named(other, differ[:count]) for other in rivals]
        if len(set(names)) == len(names):
            shown = differ[:count]
            break
    return " ".join([str(run.config["algo"]), *([_named(run, shown)] if shown else [])]) + " …" * (shown != differ)


def _named(run: RunData, names: Sequence[str]) -> str:
    return " ".join(f"{name}={_short(run.config.get(name))}" for name in names)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
