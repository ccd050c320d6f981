"""Reading runs to compare them: found in folders, each with its configuration and its journal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from esker.algorithms import registry
from esker.algorithms.observer import Row
from esker.errors import UsageError
from esker.runs.curves import Curve
from esker.runs.folder import RunFolder, is_checkpoint
from esker.runs.listing import find_runs as find_under
from esker.runs.listing import is_run

AXES = {
    "steps": "env_steps",
    "training": "training_steps",
    "episodes": "episodes",
    "generations": "generation",
    "time": "wall_time",
}
AXIS_LABELS = {
    "steps": "environment steps",
    "training": "training steps",
    "episodes": "episodes",
    "generations": "generation",
    "time": "training time (s)",
}
# Columns that describe the policy: they keep their last value when a run stops at its goal.
LASTING = frozenset({"center_return", "best_return", "return_mean", "return_max", "return_min", "episode_length_mean"})


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
        """The environment; of an `esker.Evolution` run, its reward."""
        return str(self.config["env"])

    @property
    def seed(self) -> int:
        return int(self.config["seed"])

    @property
    def best_return(self) -> float | None:
        """The mean return by which the best centre was judged."""
        return self.folder.best_return()

    @property
    def reached_goal(self) -> bool:
        """Whether the run stopped because its goal was reached."""
        return self.status.startswith("finished: goal reached")

    @cached_property
    def centers(self) -> list[Row]:
        """The return of every centre where it belongs: after what it was trained on, from nothing to the whole run.

        A row of the journal has the return of the centre that its generation began with; the last one's is beside it.
        """
        judged = self.folder.judged_rows(self.rows)
        places = [{name: 0 for name in AXES.values() if name in row} for row in judged[:1]]
        places += [{name: row.get(name) for name in AXES.values()} | {"generation": row["generation"] + 1} for row in judged]
        found = [where | {"center_return": row.get("center_return")} for where, row in zip(places, judged, strict=False)]
        return found[1:] if judged and judged[0]["generation"] else found  # a journal that lost its beginning

    def curve(self, x: str, y: str) -> Curve:
        """A column against an axis, without the generations that lack it."""
        rows = self.centers if y == "center_return" else self.rows
        found = ((row.get(AXES[x]), row.get(y)) for row in rows)
        pairs = [pair for pair in found if all(isinstance(value, int | float) for value in pair)]
        both = np.array(pairs, dtype=np.float64).reshape(-1, 2)
        return Curve(both[:, 0], both[:, 1], ended=self.reached_goal and y in LASTING)


def find_runs(paths: Iterable[str | Path]) -> list[Path]:
    """The run folders that paths name; a folder of runs stands for those inside it. None raises UsageError."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.is_dir() or is_checkpoint(path) or is_run(path):
            RunFolder.open(path)  # raises what is wrong with it
            found[path] = None
            continue
        inside = list(find_under(path))
        if not inside:
            raise UsageError(f"{str(path)!r} is not a run folder and holds none; `esker train` makes one")
        found |= dict.fromkeys(inside)
    return list(found)


def read_run(path: Path, name: str | None = None) -> RunData:
    """The current state of a run. A folder that is none raises UsageError."""
    folder = RunFolder.open(path)
    config = vars(folder.config(registry.options_of))
    return RunData(folder, name or path.name, dict(config), folder.about(), folder.status(), folder.rows())


def read_runs(paths: Iterable[str | Path], skip: Callable[[str], None] | None = None) -> list[RunData]:
    """All runs that paths name, each under the shortest name that distinguishes it from the others.

    A damaged run raises UsageError; with `skip`, it is left out where another one can be read, and `skip` called with the
    reason.
    """
    folders, runs = find_runs(paths), list[RunData]()
    damaged: list[UsageError] = []
    for path, name in zip(folders, _names(folders), strict=True):
        try:
            runs.append(read_run(path, name))
        except UsageError as error:
            damaged.append(error)
    if damaged and (skip is None or not runs):
        raise damaged[0]
    for problem in damaged:
        assert skip is not None
        skip(f"left out: {problem}")
    return runs


def _names(paths: Sequence[Path]) -> list[str]:
    """The last parts of each path, as many as it takes to distinguish all of them."""
    whole = [path.resolve() for path in paths]
    for depth in range(1, max((len(path.parts) for path in whole), default=1) + 1):
        names = ["/".join(path.parts[-depth:]) for path in whole]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in whole]
