"""A run in a few words, for its repr and for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from esker.logs.text import duration, number
from esker.system.words import count

if TYPE_CHECKING:
    from esker.runs.loading import Run


def describe_run(run: Run) -> list[tuple[str, str]]:
    """What a run trains, its progress and its status, read from its files only."""
    values, rows = run.folder.values(), run.history
    trained = "no generation yet"
    if rows:
        last = rows[-1]
        trained = (
            f"{count(len(rows), 'generation')}, {last.get('env_steps', 0):,} steps, {duration(last.get('wall_time', 0.0))}"
        )
    return [
        ("environment", str(values.get("env", "reward function"))),
        ("algorithm", f"{values.get('algo')}, seed {values.get('seed')}"),
        ("trained", trained),
        ("best centre return", number(run.best_return)),
        ("status", run.status),
    ]
