"""Policies that come with presets: used by name, as good as recorded, data only."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import esker
from esker import presets
from esker.cli import main
from esker.errors import UsageError
from esker.runs.loading import evaluate

SHIPPED = [preset for preset in presets.load_all().values() if preset.policy is not None]
TINY = {
    "generations": 1,
    "population": 4,
    "workers": 0,
    "noise": "counter",
    "quiet": True,
    "goal": None,
    "center_episodes": 1,
}


@pytest.mark.parametrize("preset", SHIPPED, ids=lambda preset: preset.name)
def test_a_shipped_policy_scores_within_its_record(preset: presets.Preset) -> None:
    assert preset.policy is not None
    files = {file.name for file in preset.policy.iterdir()}
    assert files == {"state.safetensors", "state.json", "config.toml", "about.json", "results.json"}
    record = json.loads((preset.policy / "results.json").read_text())
    evaluation, notices = evaluate(preset.name, episodes=1, workers=0)
    assert notices == []
    assert record["min"] - abs(record["min"]) / 10 <= evaluation.summary()["mean"] <= record["max"] + abs(record["max"]) / 10


def test_cartpole_is_solved_by_the_policy_that_comes_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "cartpole/es", "--episodes", "2", "--workers", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean"] == 500.0
    assert esker.load("cartpole/es").act([0.0, 0.0, 0.1, 0.5]) == 1


def test_a_folder_of_that_name_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = esker.load("cartpole/es").parameters
    esker.train("CartPole-v1", run_dir="cartpole/es", **TINY)
    assert not np.array_equal(esker.load("cartpole/es").parameters, shipped)


def test_a_run_may_begin_from_a_shipped_policy(tmp_path: Path) -> None:
    run = esker.train("CartPole-v1", run_dir=str(tmp_path / "run"), init_from="cartpole/es", **TINY)
    np.testing.assert_array_equal(run.policy(0).parameters, esker.load("cartpole/es").parameters)


def test_a_preset_without_a_policy_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(UsageError, match=r"no trained policy comes with the preset 'halfcheetah/td3'; .*cartpole/es"):
        esker.load("halfcheetah/td3")


def test_a_shipped_policy_is_not_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", "cartpole/es"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_misspelt_policy_is_suggested(capsys) -> None:
    assert main(["render", "humanoid/arss"]) == 2
    assert capsys.readouterr().err == "esker: error: 'humanoid/arss' does not exist; did you mean 'humanoid/ars'?\n"
