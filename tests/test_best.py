"""The best centre: chosen by a rule that lucky readings cannot fool, and the last centre takes part."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esker
from esker.algorithms.loop import conclude
from esker.algorithms.progress import CERTAIN, Progress, lower_bound
from esker.algorithms.snapshot import Snapshot
from esker.config.options import ESConfig
from esker.runs.pointers import wanted

CONFIG = ESConfig()


def told(readings: list[list[float]]) -> Progress:
    progress = Progress()
    for generation, returns in enumerate(readings):
        progress.count_center(CONFIG, generation, returns)
    return progress


def test_lower_bound_is_the_mean_less_one_standard_error() -> None:
    assert lower_bound([1.0, 3.0]) == 2.0 - math.sqrt(2) / math.sqrt(2)
    assert lower_bound([5.0]) == 5.0


def test_until_enough_episodes_were_seen_the_newest_is_the_best() -> None:
    progress = told([[9.0, 9.0], [1.0, 1.0]])
    assert (progress.best_generation, progress.best_bound) == (1, None)


def test_one_lucky_reading_does_not_make_the_best() -> None:
    luck = [[100.0, 100.0]] * 10 + [[130.0, 130.0]] + [[105.0, 105.0]] * 10
    assert told(luck).best_generation == len(luck) - 2  # the lucky one is still in the window then, among better ones


def test_a_later_decline_leaves_the_best_where_it_was() -> None:
    rising = [[float(value)] * 4 for value in range(0, 100, 10)]
    falling = [[float(value)] * 4 for value in range(90, 0, -10)]
    best = told(rising + falling).best_generation
    assert best is not None
    assert len(rising) <= best <= len(rising) + 2


def test_noise_chooses_within_the_plateau_and_not_the_lucky_start() -> None:
    rng = np.random.default_rng(0)
    readings = [(5000 + rng.normal(0, 1500, 2)).tolist() for _ in range(100)]
    readings += [(7000 + rng.normal(0, 300, 2)).tolist() for _ in range(100)]
    best = told(readings).best_generation
    assert best is not None
    assert best >= 105


def test_a_reading_that_is_not_finite_is_never_the_best() -> None:
    progress = told([[1.0] * CERTAIN])
    assert not progress.improves([math.nan])
    progress.count_center(CONFIG, 1, [math.nan])
    assert progress.best_generation == 0


def test_the_last_policy_takes_part_in_the_choice(tmp_path: Path) -> None:
    options = {"hidden": (8,), "initial_steps": 50, "training_steps": 250, "generation_steps": 200, "batch_size": 16}
    run = esker.train("Pendulum-v1", algo="td3", preset=None, run_dir=str(tmp_path / "run"), quiet=True, **options)
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert final["generation"] == len(run.history)
    assert run.folder.best_file.read_text().strip() == f"{final['generation']:06d}"
    assert (run.best_return, final["best_episodes"]) == (final["best_mean"], CERTAIN)
    assert final["best_return"] == final["center_return"]  # of too few episodes for neighbours to count: its own mean
    returns, _ = esker.evaluate(run.path, episodes=1, workers=0)
    assert returns.checkpoint == final["generation"]


@pytest.mark.parametrize("algo", ["es", "cem-rl"])
def test_a_run_that_continues_sees_the_last_centre_again_as_its_next_generation(algo: str, tmp_path: Path) -> None:
    small = {"population": 4, "center_episodes": 2, "workers": 0, "preset": None, "quiet": True}
    more = (
        {"noise": "counter"} if algo == "es" else {"hidden": (8,), "initial_steps": 20, "batch_size": 8, "rl_population": 2}
    )
    esker.train("Pendulum-v1", algo=algo, run_dir=str(tmp_path / "run"), generations=2, **small, **more)
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    rows = esker.resume(tmp_path / "run", generations=3, quiet=True).history
    assert rows[2]["center_return"] == pytest.approx(final["center_return"], rel=1e-12)


class Told:
    """A state that ends after readings of `means`, and a record of its snapshots, as `conclude` sees them."""

    config, generation = CONFIG, 5

    def __init__(self, means: list[float]) -> None:
        self.progress = told([[mean] * 5 for mean in means])
        self.pointed = self.progress.best_generation

    def snapshot(self) -> Snapshot:
        return Snapshot(self.generation, {}, {})

    def stored(self, generation: int) -> Snapshot | None:
        return Snapshot(generation, {}, {})

    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None:
        self.pointed = snapshot.generation


@pytest.mark.parametrize(("last", "best"), [(90.0, 5), (-900.0, 4)])
def test_the_best_is_reported_by_what_it_reaches_alone(last: float, best: int) -> None:
    state: Any = Told([0.0, 0.0, 0.0, 20.0, 40.0])
    row = conclude(state, state, [last] * 5, lambda snapshot: [100.0 * snapshot.generation, math.nan])
    assert state.pointed == best
    assert (row["best_mean"], row["best_episodes"]) == (100.0 * best, 1)
    assert row["best_return"] < 50  # by which it was chosen: a mean with the centres before it


class Push(gym.Env[Any, Any]):
    """One step, whose reward is the action: every episode of a policy has the same return."""

    observation_space, action_space = gym.spaces.Box(1, 1, (1,), np.float64), gym.spaces.Box(-9, 9, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.ones(1), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.ones(1), float(action[0]), True, False, {}


def test_the_reported_best_is_that_of_its_checkpoint_and_not_of_those_before(tmp_path: Path) -> None:
    small = {"population": 8, "network": "linear", "sigma": 0.5, "lr": 0.5, "generations": 8, "workers": 0, "preset": None}
    run = esker.train(Push, run_dir=str(tmp_path / "run"), quiet=True, normalize_observations=False, **small)
    assert run.history[-1]["best_return"] < run.history[-1]["center_return"] - 0.5  # it rises, and so does the mean, later
    assert run.best_return == run.evaluate(2, workers=0).mean


def test_equal_returns_leave_no_doubt_about_the_best(tmp_path: Path) -> None:
    small = {"population": 2, "hidden": (2,), "generations": 2, "workers": 0, "preset": None, "center_episodes": 1}
    run = esker.train("worlds:Corridor", run_dir=str(tmp_path / "run"), quiet=True, **small)
    assert run.folder.best_file.read_text().strip() == "000002"
    assert esker.evaluate(run.path, episodes=1, workers=0).notices == []
    assert wanted(run.resume(generations=3, quiet=True).folder, "best", 3) == (3, [])
