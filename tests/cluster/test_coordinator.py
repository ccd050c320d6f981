"""The coordinator: it may die, its node may die, its disk may go, its viewers may go; the run ends with the same bits."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from cluster_helpers import SMALL, Training, bits, undisturbed

import esker
from esker.errors import RunError, UsageError

SLOW = "cluster_worlds:make_slow"


@pytest.mark.faults
def test_a_coordinator_killed_with_its_run_folder_continues_from_another_nodes_copy(two_nodes: Any, tmp_path: Path) -> None:
    options = {"generations": 7, "env_kwargs": {"pause": 0.002}}
    expected = undisturbed(tmp_path / "alone", SLOW, **options)
    training = Training(tmp_path / "killed", SLOW, **options)
    training.reach(2)
    os.kill(training.pid(), signal.SIGKILL)
    shutil.rmtree(training.path)
    assert training.finish() == expected
    assert any("restored from another node's copy" in text for text in training.notes)
    assert len((training.path / "journal.jsonl").read_text().splitlines()) == 7


def test_an_exception_in_one_environment_is_the_users_and_the_run_is_resumable(two_nodes: Any, tmp_path: Path) -> None:
    from esker.noise.address import Purpose, episode_seed

    seed = episode_seed(0, Purpose.EPISODE, 2, 3, 0)  # generation 2, pair 3
    options = {"generations": 4, "env_kwargs": {"seed": seed}}
    training = Training(tmp_path / "faulty", "cluster_worlds:make_faulty", **options)
    with pytest.raises(RunError) as caught:
        training.finish()
    message = str(caught.value)
    assert re.search(rf"generation 2, member [67], episode 0, seed {seed}: ValueError: the wheel came off", message)
    assert "esker resume" in message
    assert len(training.rows) == 2
    config = training.path / "config.toml"
    config.write_text('address = "127.0.0.1:1"\n' + config.read_text())  # a cluster that is no more does not hold it back
    esker.resume(training.path, env=lambda seed: esker_env(), workers=1, engine="local")
    assert len(esker.Run(training.path).history) == 4


def esker_env() -> Any:
    import gymnasium

    return gymnasium.make("CartPole-v1")


def test_an_active_name_is_refused_and_stop_saves_and_resume_ends_with_the_same_bits(two_nodes: Any, tmp_path: Path) -> None:
    from esker.cluster import viewer

    options = {"generations": 6, "env_kwargs": {"pause": 0.002}}
    training = Training(tmp_path / "one", SLOW, **options)
    training.reach(1)
    with pytest.raises(UsageError, match="'one' is active on this cluster"):
        esker.train(SLOW, engine="ray", run_dir=str(tmp_path / "elsewhere" / "one"), **SMALL)
    assert {run.name: run.status for run in viewer.summaries()}["one"] == "running"
    end = viewer.stop(training.coordinator, "one")
    assert end.kind == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        training.finish()
    assert 1 <= len(esker.Run(training.path).history) < 6
    esker.resume(training.path)
    assert bits(training.path) == undisturbed(tmp_path / "alone", SLOW, **options)
