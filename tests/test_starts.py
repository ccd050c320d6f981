"""Several starts: each begins anew, the best of them goes on, and a run that stops anywhere resumes to the same bits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import center

import esker
from esker.algorithms.snapshot import Snapshot
from esker.algorithms.starts import Starts
from esker.noise.address import Purpose, generator
from esker.policies.mlp import MLP
from esker.runs import checkpoints
from esker.runs.request import configure
from esker.strategies.openai_es import OpenAIES

# Pendulum's episodes have 200 steps: a generation of 12 members and 2 centres has 2,800, and a start three generations.
OPTIONS: dict[str, Any] = {
    "population": 12,
    "center_episodes": 2,
    "hidden": (8,),
    "sigma": 0.1,
    "lr": 0.05,
    "table_size": 100_000,
    "checkpoint_every": 1,
    "keep": 100,
    "workers": 0,
    "quiet": True,
    "generations": 14,
    "starts": 3,
    "start_steps": 8_000,
}


def train(path: Path, **changes: Any) -> esker.Run:
    return esker.train("Pendulum-v1", **(OPTIONS | {"run_dir": str(path)} | changes))


def stored(run: esker.Run, generation: int) -> Snapshot:
    """The state before a generation."""
    assert run.path is not None
    return checkpoints.read(Path(run.path) / "checkpoints" / checkpoints.folder_name(generation))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> esker.Run:
    return train(tmp_path_factory.mktemp("starts") / "run")


def test_the_first_start_is_the_run_that_has_no_other(reference: esker.Run, tmp_path: Path) -> None:
    plain = train(tmp_path / "plain", starts=1, start_steps=1_000_000, generations=3)
    same = ("env_steps", "return_mean", "center_return", "gradient_norm")
    assert [[row[k] for k in same] for row in plain.history] == [[row[k] for k in same] for row in reference.history[:3]]
    assert all("start" not in row for row in plain.history)


def test_each_start_begins_elsewhere_with_nothing_of_the_one_before(reference: esker.Run) -> None:
    network = MLP((3, 8, 1), "tanh", "xavier")
    for start, generation in ((2, 3), (3, 6)):
        state = stored(reference, generation)
        assert (state.arrays["center"] == network.initial(generator(0, Purpose.INITIAL, start))).all()
        assert state.values["statistics_count"] == 0
        assert not any(name.startswith("optimizer.") for name in (*state.arrays, *state.values))  # Adam has no moments yet


def test_the_best_start_goes_on_from_where_it_ended(reference: esker.Run) -> None:
    scores = [np.mean([row["center_return"] for row in reference.history[first : first + 3]]) for first in (0, 3, 6)]
    best = int(np.argmax(scores)) + 1
    assert [row["start"] for row in reference.history] == [1] * 3 + [2] * 3 + [3] * 3 + [best] * 5
    notes = [row["note"] for row in reference.history if "start" in row.get("note", "")]
    assert [float(re.findall(r"came to (-[\d,.]+\d)", note)[0].replace(",", "")) for note in notes] == pytest.approx(
        scores, abs=0.06
    )
    assert f"goes on with start {best}" in notes[-1]
    ended = stored(reference, 3 * best)  # already the next start's, which carries the best so far
    kept = stored(reference, 9)
    if best < 3:
        assert (kept.arrays["center"] == ended.arrays["start.center"]).all()
        assert (kept.arrays["statistics.total"] == ended.arrays["start.statistics.total"]).all()
    assert not any(name.startswith("start.") for name in kept.arrays)
    assert kept.values["statistics_count"] == 3 * 12 * 200


@pytest.mark.parametrize("at", [1, 3, 4, 8, 9, 11])
def test_a_run_that_stops_anywhere_resumes_to_the_same_bits(reference: esker.Run, tmp_path: Path, at: int) -> None:
    train(tmp_path / "run", generations=at)
    run = esker.resume(tmp_path / "run", generations=14)
    assert center(run).tobytes() == center(reference).tobytes()
    same = ("start", "return_mean", "center_return", "gradient_norm", "best_return")
    assert [[row[k] for k in same] for row in run.history] == [[row[k] for k in same] for row in reference.history]


@pytest.mark.parametrize("algo", ["pgpe", "snes", "cma"])
def test_starts_are_for_every_synchronous_strategy(tmp_path: Path, algo: str) -> None:
    options = {"algo": algo, "sigma": 0.1, "generations": 8, "starts": 2, "lr": 0.1 if algo == "pgpe" else 1.0}
    whole = train(tmp_path / "whole", **options)
    train(tmp_path / "run", **options | {"generations": 5})
    resumed = esker.resume(tmp_path / "run", generations=8)
    assert [row["start"] for row in whole.history][:6] == [1] * 3 + [2] * 3
    assert center(resumed).tobytes() == center(whole).tobytes()


def test_a_start_without_a_finite_reading_is_never_the_best() -> None:
    place = Snapshot(3, {"center": np.ones(2)}, {})
    starts = Starts(count=2, steps=10)
    assert starts.end(-np.inf, 10, Snapshot(1, {"center": np.zeros(2)}, {})) is None
    assert starts.end(-5.0, 20, place) is place
    assert starts.current == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"starts": 0, "start_steps": 1_000_000}, "starts is 0; expected"),
        ({"starts": 1}, "start_steps is 8,000, and there is one start; add --starts 4, say"),
        ({"init_from": "x"}, "starts is 3, and init_from names where to start; leave one of them out"),
    ],
)
def test_starts_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    with pytest.raises(esker.UsageError, match=re.escape(text)):
        train(tmp_path / "run", **options)


def test_starts_with_restarts_differ_and_no_generation_comes_twice(tmp_path: Path) -> None:
    options = {"algo": "sep-cma", "restarts": 3, "sigma": 0.3, "lr": 1.0, "generations": 12}
    run = train(tmp_path / "run", **options)
    assert [row["generation"] for row in run.history] == list(range(12))
    first = [row["center_return"] for row in run.history if row["generation"] in (0, 3, 6)]
    assert len(set(first)) == 3  # each start begins elsewhere
    before = run.history
    assert run.resume(generations=14, quiet=True).history[:12] == before[:12]


def test_restarts_of_a_start_begin_around_that_start(tmp_path: Path) -> None:
    options = {"algo": "sep-cma", "restarts": 3, "sigma": 0.3, "lr": 1.0, "generations": 8}
    run = train(tmp_path / "run", **options)
    network = MLP((3, 8, 1), "tanh", "xavier")
    for start, generation in ((2, 3), (3, 6)):
        state = stored(run, generation)
        assert (state.arrays["origin"] == network.initial(generator(0, Purpose.INITIAL, start))).all()
        assert (state.arrays["center"] == state.arrays["origin"]).all()


@pytest.mark.parametrize("steps", [100_000, "100000", "1e5", 100_000.0, "100_000"])
def test_an_automatic_preset_gives_its_starts_up_however_the_steps_are_written(steps: Any) -> None:
    assert (found := configure("HalfCheetah-v5", {"steps": steps}).config).starts == 1
    assert found.steps == 100_000


def test_a_length_of_starts_that_does_not_fit_is_refused_with_what_makes_it_so() -> None:
    with pytest.raises(esker.UsageError, match=r"starts of 50,000 leave none.*\(with preset halfcheetah/ars, chosen for"):
        configure("HalfCheetah-v5", {"steps": 100_000, "start_steps": 50_000})


class WithOrigin(OpenAIES):
    """Keeps an array of three numbers under a name that `Restarts` uses."""

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"origin": torch.zeros(3)}


def test_a_strategy_of_ones_own_keeps_what_it_calls_origin(tmp_path: Path) -> None:
    run = train(tmp_path / "run", strategy="test_starts:WithOrigin", generations=4)
    assert stored(run, 3).arrays["origin"].tolist() == [0.0, 0.0, 0.0]


def test_a_preset_with_several_starts_gives_them_up_where_the_steps_do_not_suffice() -> None:
    asked = configure("HalfCheetah-v5", {"steps": 100_000})
    assert asked.config.starts == 1
    assert any("100,000 steps" in text and "starts" in text for text in asked.notices)
    with pytest.raises(esker.UsageError, match="starts of 1,000 leave none of them to go on"):
        configure("CartPole-v1", {"steps": 4000, "starts": 4, "start_steps": 1000}, preset=None)
