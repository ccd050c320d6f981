"""What the report's page draws, as one JSON object: runs, their curves, distributions, differences, videos, sweep."""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from esker import __version__
from esker.algorithms import registry
from esker.algorithms.observer import Row
from esker.algorithms.stalls import stalls
from esker.config.build import optional_names
from esker.errors import UsageError
from esker.logs.references import Reference
from esker.noise.shaping import SIGN_SHAPINGS
from esker.runs.files import is_plain
from esker.runs.groups import INCIDENTAL, Group, differences, group_runs
from esker.runs.reading import AXES, AXIS_LABELS, LASTING, RunData
from esker.runs.statistics import summarize_seeds

QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
# Journal columns that the page can draw, with the heading of their chart.
COLUMNS = {
    "center_return": "Centre return",
    "return_mean": "Mean return of members",
    "return_max": "Best member",
    "return_min": "Worst member",
    "return_std": "Spread of returns",
    "center_rank": "Centre rank",
    "members": "Members",
    "steps_per_second": "Steps per second",
    "episode_length_mean": "Episode length",
    "sigma": "Sigma",
    "gradient_norm": "Gradient norm",
    "update_ratio": "Update ratio",
    "critic_loss": "Critic loss",
    "actor_loss": "Actor loss",
    "rl_share": "Share of gradient-trained members",
}
MOST_POINTS, ALL_POINTS, FEWEST_POINTS = 600, 12_000, 100
MOST_VIDEO_BYTES = 8_000_000
SWEEP_PARTS = ("name", "env", "sampler", "objective", "space", "trials", "best", "importance")


def report_data(
    runs: Sequence[RunData],
    *,
    sweeps: Sequence[dict[str, Any]] = (),
    references: Sequence[Reference] = (),
    live: bool = False,
) -> dict[str, Any]:
    """Everything the page shows of these runs."""
    groups = _named_by_trial(group_runs(runs)) if sweeps else group_runs(runs)
    group_of = {id(run): number for number, group in enumerate(groups) for run in group.runs}
    copies = {id(run) for group in groups for run in group.runs} - {id(run) for group in groups for run in group.distinct}
    points = max(FEWEST_POINTS, min(MOST_POINTS, ALL_POINTS // max(1, len(runs))))
    return {
        "esker": __version__,
        "written": time.strftime("%Y-%m-%d %H:%M"),
        "live": live,
        "axes": AXIS_LABELS,
        "axis_columns": AXES,
        "columns": COLUMNS,
        "quantiles": QUANTILES,
        "lasting": sorted(LASTING),
        "groups": [group_data(group) for group in groups],
        "runs": [run_data(run, group_of[id(run)], points) | {"copy": id(run) in copies} for run in runs],
        "differing": differing(groups),
        "sweeps": list(sweeps),
        "references": [asdict(reference) for reference in references],
    }


def differing(groups: Sequence[Group]) -> list[str]:
    """The options in which configurations differ, among those that have the option at all."""
    firsts = [group.runs[0] for group in groups]
    names = [name for name in differences(firsts) if name not in INCIDENTAL]
    return [name for name in names if len({repr(run.config[name]) for run in firsts if name in run.config}) > 1]


def _named_by_trial(groups: Sequence[Group]) -> list[Group]:
    """A sweep's configurations under the numbers of their trials; which options those had, the sweep's charts show."""
    paths = [group.runs[0].folder.path for group in groups]
    return [
        replace(group, label=f"trial {int(path.name)}") if path.parent.name == "trials" and path.name.isdigit() else group
        for group, path in zip(groups, paths, strict=True)
    ]


def group_data(group: Group) -> dict[str, Any]:
    """One configuration: its name, what a reader must know of its seeds, and their summary."""
    best = [run.best_return for run in group.distinct if run.best_return is not None]
    return {
        "env": group.env,
        "label": group.label,
        "seeds": group.count_text(),
        "notes": group.notes(),
        "summary": asdict(summarize_seeds(best)) if best else None,
    }


def read_sweeps(paths: Iterable[str | Path]) -> list[dict[str, Any]]:
    """What `esker sweep` found, for each path that is a sweep's folder. A file that cannot be read raises UsageError."""
    found = []
    for file in (Path(path) / "sweep.json" for path in paths):
        if not file.is_file():
            continue
        try:
            sweep = json.loads(file.read_text())
            found.append({name: sweep[name] for name in SWEEP_PARTS})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{str(file)!r} cannot be read: {type(error).__name__}: {error}") from error
    return found


def _options(values: dict[str, Any]) -> SimpleNamespace:
    """A run's options, with None for those that its file leaves out. An algorithm of a module is not imported for that."""
    algo = values.get("algo")
    kind = registry.options_of(str(algo)) if algo in (*registry.names(), *registry.OF_PYTHON) else None
    return SimpleNamespace(**{**dict.fromkeys(optional_names(kind) if kind else ()), **values})


def run_data(run: RunData, group: int, points: int) -> dict[str, Any]:
    """One run: what it is, its status, its curves and its video."""
    kept = thinned(len(run.rows), points)
    rows = [run.rows[index] for index in kept]
    last = run.rows[-1] if run.rows else {}
    ended = run.folder.judged_rows(run.rows)[-1:]  # the centre that the run ended with, where it was evaluated
    return {
        "name": run.name,
        "group": group,
        "seed": run.seed,
        "status": run.status,
        "ended": run.reached_goal,
        "stalls": [[generation, text] for generation, text in stalls(run.rows, _options(run.folder.values()))],
        "generations": len(run.rows),
        "best": run.best_return,
        "last": {name: last.get(name) for name in ("env_steps", "wall_time", "episodes")}
        | {"center_return": ended[0].get("center_return") if ended else None},
        "centers": _columns([run.centers[index] for index in thinned(len(run.centers), points)], "center_return"),
        "curves": _columns(rows, *COLUMNS),
        "distribution": distribution(run, points // 2),
        "config": {name: _text(value) for name, value in run.config.items()},
        "versions": run.about.get("versions", {}),
        "fingerprint": run.about.get("fingerprint"),
        "video": video_of(run.folder.path),
    }


def _columns(rows: Sequence[Row], *names: str) -> dict[str, list[Any]]:
    """The axes and some columns of a journal's rows."""
    return {name: [row.get(name) for row in rows] for name in (*AXES.values(), *names)}


def distribution(run: RunData, points: int) -> dict[str, Any] | None:
    """Quantiles of the members' fitness at some generations; None for a run that commits no facts."""
    at = {run.rows[index]["generation"]: run.rows[index] for index in thinned(len(run.rows), points)}
    columns: dict[str, list[Any]] = {name: [] for name in AXES.values()}
    levels: list[list[float]] = [[] for _ in QUANTILES]
    for facts in run.folder.facts(chosen=at):
        row = at[int(facts.generation[0])]
        fitness = facts.fitness[np.isfinite(facts.fitness)]
        if not fitness.size:
            continue
        for name, values in columns.items():
            values.append(row.get(name))
        for level, value in zip(levels, np.quantile(fitness, QUANTILES), strict=True):
            level.append(float(value))
    if not levels[0]:
        return None
    return columns | {"levels": levels, "signs": run.config.get("shaping") in SIGN_SHAPINGS}


def thinned(count: int, points: int) -> list[int]:
    """At most `points` of `count` indices, evenly spread, including the first and the last."""
    if count <= points:
        return list(range(count))
    return [round(index) for index in np.linspace(0, count - 1, points)]


def video_of(path: Path) -> dict[str, str] | None:
    """The newest video of a run that is small enough, as a data URI."""
    folder = path / "videos"
    found = [] if folder.is_symlink() else [file for file in folder.glob("*.mp4") if is_plain(file)]  # no link leads out
    for file in sorted(found, key=lambda file: file.stat().st_mtime, reverse=True):
        if file.stat().st_size <= MOST_VIDEO_BYTES:
            encoded = base64.b64encode(file.read_bytes()).decode()
            return {"name": file.stem, "source": f"data:video/mp4;base64,{encoded}"}
    return None


def to_json(value: Any) -> str:
    """JSON that is safe inside a script element: no NaN, five digits, nothing that closes the element."""
    text = json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _text(value: Any) -> str:
    """An option's value as the flag would write it."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple | list):
        return ",".join(map(str, value)) or "none"
    return json.dumps(value) if isinstance(value, dict | bool) else str(value)
