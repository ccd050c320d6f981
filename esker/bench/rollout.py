"""Rollout efficiency: whole generations (update and commit included) against bare replays of the same episodes.

The raw rate is that of as many processes stepping the same episodes, from their recorded seeds and actions, in the
barest loop there is. The two are alternated in short slices, and the median of the ratios is reported. Where others use
the machine too, the ratio by processor time tells more: a system that balances its load loses less to neighbours.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from esker.algorithms.snapshot import Snapshot
from esker.bench.measurement import Measurement
from esker.bench.prepared import prepared
from esker.bench.replay import Replayers, cpu_seconds, recorder
from esker.engines.local import LocalEngine
from esker.engines.open import local_engine
from esker.runs.folder import RunFolder

WORKERS = 2
TURNS = (
    3  # generations and replays of one slice, taken in turns: on a shared machine, measurements close in time are comparable
)


@dataclass(frozen=True)
class Case:
    """An environment, its options, and the ratio it should reach."""

    env: str
    wanted: float
    options: dict[str, Any] = field(default_factory=dict)
    solved_first: bool = False

    def measure(self, quick: bool) -> list[Measurement]:
        """Alternate slices of esker and of bare replays."""
        slices = 2 if quick else 5
        with tempfile.TemporaryDirectory() as folder:
            turns = alternate(self, Path(folder), slices)
        ratio = statistics.median(turns.ratios)
        return [Measurement(f"rollout/{self.env}", ratio, "", f"≥ {self.wanted}", turns.detail)]


EPISODES = {"population": 80, "center_episodes": 2}  # of full length, or nearly
FALLS = {"population": 1000, "center_episodes": 2}  # short episodes; as many as RLlib's configuration of Humanoid
CASES = (
    Case("HalfCheetah-v5", 1.10, EPISODES),
    Case("Humanoid-v5", 1.15, FALLS),
    Case("Hopper-v5", 1.10, FALLS),
    Case("Walker2d-v5", 1.10, FALLS),
    Case("Ant-v5", 1.10, EPISODES),
    Case("Swimmer-v5", 1.10, EPISODES),
    Case("LunarLander-v3", 0.85, {"population": 200, "center_episodes": 2}),
    Case("CartPole-v1", 0.75, {"population": 100, "center_episodes": 2, "sigma": 0.01}, solved_first=True),
)


@dataclass(frozen=True)
class Turns:
    """Seconds of esker and of the replay in each slice, processor time of both in all, and steps of one turn."""

    ours: list[float]
    raw: list[float]
    ours_processor: float
    raw_processor: float
    steps: int

    @property
    def ratios(self) -> list[float]:
        """Of each slice, the rate of esker to that of the replay."""
        return [raw / ours for ours, raw in zip(self.ours, self.raw, strict=True)]

    @property
    def detail(self) -> dict[str, Any]:
        """Details besides the median ratio."""
        return {
            "esker steps/s": f"{self.steps / statistics.median(self.ours):,.0f}",
            "raw steps/s": f"{self.steps / statistics.median(self.raw):,.0f}",
            "slices": " ".join(f"{ratio:.2f}" for ratio in self.ratios),
            "by processor time": f"{self.raw_processor / self.ours_processor:.2f}",
        }


def alternate(case: Case, folder: Path, slices: int, workers: int = WORKERS) -> Turns:
    """Take turns: a whole generation, and a bare replay of its episodes by as many processes."""
    state, about = prepared(case.env, case.options)
    task, table, config = state.task, state.table, state.config
    if case.solved_first:
        state.restore(_solved(case.env, folder))
        state.strategy.sigma = config.sigma  # type: ignore[attr-defined]
    start = state.snapshot()
    recorded = replace(task, environment=recorder(case.env, folder), vectorizer="gymnasium")
    with closing(local_engine(recorded, workers, table)) as engine:
        engine.evaluate(state.job(), state.plan())
    run = RunFolder.create(folder / f"run-{workers}", config, about)
    ours: list[float] = []
    raw: list[float] = []
    stepping = LocalEngine(task, workers, table)
    with closing(stepping), Replayers(case.env, folder, workers) as replayers:

        def processor() -> tuple[float, float]:
            return cpu_seconds([os.getpid(), *stepping.pids]), cpu_seconds(replayers.pids)

        for number in range(slices * TURNS + 1):  # the first turn warms both up
            if number == 1:
                before = processor()
            state.restore(start)
            began = time.perf_counter()
            plan = state.plan()
            stepping.evaluate(state.job(), plan)
            facts = state.facts(plan, 0.0)
            run.commit(facts)
            run.write_row(state.replay(facts, run))
            spent = time.perf_counter() - began
            replayed = replayers.replay()
            if number:
                ours.append(spent)
                raw.append(replayed)
        assert replayers.steps == int(facts.lengths.sum() + facts.center_lengths.sum())
        spent_ours, spent_raw = (now - then for now, then in zip(processor(), before, strict=True))
    return Turns(_by_slice(ours), _by_slice(raw), spent_ours, spent_raw, replayers.steps)


def _by_slice(seconds: list[float]) -> list[float]:
    """Mean seconds of the turns of each slice."""
    return [statistics.mean(seconds[at : at + TURNS]) for at in range(0, len(seconds), TURNS)]


def _solved(env: str, folder: Path) -> Snapshot:
    """The state of a run that solves the environment, observation statistics included."""
    from esker.api import train
    from esker.runs.loading import open_checkpoint

    run = train(env, run_dir=str(folder / "solved"), quiet=True, hidden=(64, 64), workers=WORKERS)
    return open_checkpoint(run.path, "best").snapshot
