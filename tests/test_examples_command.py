"""`esker examples` lists the examples and copies them, so that a wheel is enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from esker.cli import main

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_every_example_is_listed_with_its_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples"]) == 0
    shown = capsys.readouterr().out
    for path in EXAMPLES.rglob("*.py"):
        assert (str(path.relative_to(EXAMPLES)) in shown) == (path.name != "command.py")
    assert "Sphere, Rosenbrock and Rastrigin" in " ".join(shown.split())


def test_a_copied_example_runs_where_it_was_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "--copy", str(tmp_path / "mine")]) == 0
    copies = {path.relative_to(tmp_path / "mine") for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    assert copies == {
        path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    command = [sys.executable, "numpy_model.py", "--help"]
    done = subprocess.run(command, cwd=tmp_path / "mine", capture_output=True, text=True, timeout=60)
    assert (done.returncode, "sin(x)" in done.stdout) == (0, True), done.stderr


def test_an_existing_folder_is_not_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "--copy", str(tmp_path)]) == 2
    assert "which exists" in capsys.readouterr().err
