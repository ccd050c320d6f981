"""More workers than cores: they run, with a notice."""

from __future__ import annotations

from pathlib import Path

import esker
from esker.system.cores import available_cores


class Notes:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def begin(self, config: object, folder: object, rows: object) -> None: ...
    def generation(self, row: object, returns: object = None) -> None: ...
    def end(self, reason: str) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)


def notes(tmp_path: Path, workers: int) -> list[str]:
    observer = Notes()
    options = {"preset": None, "population": 4, "generations": 1, "center_episodes": 1, "hidden": (4,), "noise": "counter"}
    esker.train("CartPole-v1", run_dir=str(tmp_path / str(workers)), workers=workers, observer=observer, **options)
    return observer.notes


def test_workers_beyond_the_cores_are_reported(tmp_path: Path) -> None:
    cores = available_cores()
    said = f"{cores + 1} workers for {cores} cores: they share cores"
    assert said in notes(tmp_path, cores + 1)
    assert not any("share cores" in note for note in notes(tmp_path, 1))
