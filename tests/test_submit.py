"""Notices when a run is handed to a cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support import HERE

from esker.cluster import submit, viewer
from esker.cluster.coordinator import Request
from esker.runs.folder import RunFolder
from esker.worlds.environments import Environment


@pytest.mark.parametrize(("run", "stays"), [("es-counter", False), ("cem-rl", True)])
def test_a_run_whose_replay_is_not_copied_says_so_at_its_start(
    run: str, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []

    def launch(request: Request, *rest: object, **more: object) -> None:
        asked.append(request)
        raise TimeoutError

    monkeypatch.setattr(viewer, "launch", launch)
    monkeypatch.setattr(viewer, "here", lambda: None)
    monkeypatch.setattr(viewer, "away_from_the_head", lambda: None)
    folder = RunFolder.open(Path(shutil.copytree(HERE / "data" / "runs" / run, tmp_path / run)))
    with pytest.raises(TimeoutError):
        submit.run_on_cluster(folder, Environment("x"), None, ["a notice"])  # type: ignore[arg-type]
    assert asked[0].notices == ["a notice", *([submit.STAYS_HERE] if stays else [])]
