"""A viewer of a coordinator that was restarted between two questions."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import HERE

from esker.cluster import copies, viewer
from esker.cluster.coordinator import Coordinator, End, News
from esker.errors import RunError
from esker.runs.folder import RunFolder

ray = pytest.importorskip("ray")


def answering(**answers: Any) -> Any:
    """A coordinator: each method gives its answers in turn, the last one again and again."""

    def method(replies: list[Any]) -> Any:
        return SimpleNamespace(remote=lambda *arguments: replies.pop(0) if len(replies) > 1 else replies[0])

    return SimpleNamespace(**{name: method(list(replies)) for name, replies in answers.items()})


@pytest.fixture(autouse=True)
def answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "get", lambda answer, timeout=None: answer)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "data" / "runs" / "es-counter", tmp_path / "run"))


def test_earlier_generations_are_shown_though_a_restarted_coordinator_has_none_yet(path: Path) -> None:
    class Display:
        def begin(self, config: Any, folder: Any, rows: list[Any]) -> None:
            self.rows = rows

        def end(self, reason: str) -> None: ...

    first, display = len(RunFolder(path).rows()), Display()
    coordinator = answering(config=["a configuration"], follow=[News(1, [], [], End("finished", "done"))])
    viewer.watch(coordinator, "run", path, display, first)  # type: ignore[arg-type]
    assert [row["generation"] for row in display.rows] == list(range(first))
    assert first > 0


def test_a_folder_that_a_restarted_coordinator_lacks_is_not_brought_home(path: Path, tmp_path: Path) -> None:
    length = copies.facts_length(path)
    gone: Any = SimpleNamespace(_request=SimpleNamespace(path=str(tmp_path / "gone")))
    coordinator = answering(facts_length=[length], files=[Coordinator.files(gone)])
    with pytest.raises(RunError, match="which is gone"):
        viewer.bring_home(coordinator, "run", tmp_path / "home")


def test_facts_of_a_killed_restoration_are_not_replaced_by_fewer(path: Path, tmp_path: Path) -> None:
    files = copies.essentials(RunFolder(path))
    half = tmp_path / "half"
    half.mkdir()
    (half / "facts").write_bytes(files["facts"])  # a coordinator was killed before it wrote the configuration
    copies.write(half, files | {"facts": b""})  # what the starter sent
    assert copies.facts_length(half) == len(files["facts"])
