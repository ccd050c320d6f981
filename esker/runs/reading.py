"""Reading runs to compare them: found in folders, grouped by configuration, their curves aggregated over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esker.config.options import ALGORITHMS, RESUMABLE
from esker.errors import UsageError
from esker.runs.folder import RunFolder, is_checkpoint
from esker.runs.listing import find_runs as find_under

Row = dict[str, Any]
Values = NDArray[np.float64]
AXES = {"steps": "env_steps", "generations": "generation", "time": "wall_time"}
AXIS_LABELS = {"steps": "environment steps", "generations": "generation", "time": "training time (s)"}
# Options that do not decide what a run computes: runs that differ only in these are one configuration.
INCIDENTAL = RESUMABLE | {"seed", "run_dir"}


@dataclass(frozen=True)
class RunData:
    """A run as it stands: its configuration, what it began with, and its journal."""

    folder: RunFolder
    name: str
    config: dict[str, Any]
    about: dict[str, Any]
    status: str
    rows: list[Row]

    @property
    def env(self) -> str:
        return str(self.config["env"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @property
    def best_return(self) -> float | None:
        """The best centre return, a mean of the centre's episodes."""
        return max((row["center_return"] for row in self.rows if row.get("center_return") is not None), default=None)

    def curve(self, x: str, y: str) -> tuple[Values, Values]:
        """A column against an axis, without the generations that lack it."""
        pairs = [(row[AXES[x]], row[y]) for row in self.rows if row.get(y) is not None and row.get(AXES[x]) is not None]
        both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
        return both[:, 0], both[:, 1]


@dataclass(frozen=True)
class Group:
    """Runs of one configuration that differ in their seed only."""

    env: str
    label: str
    runs: tuple[RunData, ...]


@dataclass(frozen=True)
class Band:
    """Curves of several seeds over the stretch that all of them cover."""

    x: Values
    mean: Values
    std: Values
    low: Values
    high: Values


def find_runs(paths: Iterable[str | Path]) -> list[Path]:
    """The run folders that paths name; a folder that is no run stands for those inside it. None raises UsageError."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.is_dir() or is_checkpoint(path) or (path / "config.toml").is_file():
            RunFolder.open(path)  # says what is wrong with it
            found[path] = None
            continue
        inside = list(find_under(path))
        if not inside:
            raise UsageError(f"{str(path)!r} is not a run folder and holds none; `esker train` makes one")
        found |= dict.fromkeys(inside)
    return list(found)


def read_run(path: Path, name: str | None = None) -> RunData:
    """A run as it stands now. A folder that is none raises UsageError."""
    folder = RunFolder.open(path)
    config = vars(folder.config(ALGORITHMS))
    return RunData(folder, name or path.name, dict(config), folder.about(), folder.status(), folder.rows())


def read_runs(paths: Iterable[str | Path]) -> list[RunData]:
    """All runs that paths name, each under the shortest name that tells it from the others."""
    folders = find_runs(paths)
    return [read_run(path, name) for path, name in zip(folders, _names(folders), strict=True)]


def group_runs(runs: Sequence[RunData]) -> list[Group]:
    """The runs by configuration, in the order in which each first appears; labels say how groups differ."""
    by_key: dict[str, list[RunData]] = {}
    for run in runs:
        by_key.setdefault(repr(sorted(_deciding(run).items())), []).append(run)
    members = list(by_key.values())
    groups = []
    for some in members:
        rivals = [other[0] for other in members if other[0].env == some[0].env]
        groups.append(Group(some[0].env, _label(some[0], rivals), tuple(some)))
    return groups


def differences(runs: Sequence[RunData]) -> dict[str, list[Any]]:
    """The options in which runs differ, each with every run's value; an option a run does not know is None."""
    names = dict.fromkeys(name for run in runs for name in run.config)
    table = {name: [run.config.get(name) for run in runs] for name in names if name != "run_dir"}
    return {name: values for name, values in table.items() if any(value != values[0] for value in values)}


def aggregate(curves: Sequence[tuple[Values, Values]], points: int = 400) -> Band | None:
    """Mean, deviation and range of curves, interpolated where all of them have values; None where they nowhere do."""
    curves = [curve for curve in curves if len(curve[0])]
    if not curves:
        return None
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    if last < first:
        return None
    own = np.unique(np.concatenate([x for x, _ in curves]))
    grid = own[(own >= first) & (own <= last)]
    if len(grid) > points:
        grid = np.linspace(first, last, points)
    values = np.array([np.interp(grid, x, y) for x, y in curves])
    return Band(grid, values.mean(axis=0), values.std(axis=0), values.min(axis=0), values.max(axis=0))


def _deciding(run: RunData) -> dict[str, Any]:
    return {name: value for name, value in run.config.items() if name not in INCIDENTAL}


def _label(run: RunData, rivals: Sequence[RunData]) -> str:
    """The algorithm, and the options in which this configuration differs from others of its environment."""
    differ = [name for name in differences(rivals) if name not in INCIDENTAL and name not in ("algo", "env")]
    parts = [f"{name}={_short(run.config.get(name))}" for name in differ]
    return " ".join([str(run.config["algo"]), *parts[:4], *(["…"] if len(parts) > 4 else [])])


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _names(paths: Sequence[Path]) -> list[str]:
    """The last parts of each path, as many as it takes to tell all of them apart."""
    whole = [path.resolve() for path in paths]
    for depth in range(1, max((len(path.parts) for path in whole), default=1) + 1):
        names = ["/".join(path.parts[-depth:]) for path in whole]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in whole]
