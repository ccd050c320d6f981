"""Damaged run folders: every command that reads one continues from what is intact, or refuses in one line."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_runs import small_run
from watched import CANARY, EXAMPLES, plant_canary, status_of

COMMANDS: dict[str, list[str]] = {
    "eval": ["--episodes", "1", "--workers", "0"],
    "resume": ["--generations", "5", "--workers", "0", "--quiet"],
    "export": ["--format", "state-dict", "-o", "exported"],
    "report": ["-o", "x.html"],
    "plot": ["-o", "x.png"],
    "runs": [],
}
many = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, print_blob=False
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ESKER_TRACEBACK", "1")
    plant_canary(tmp_path)


def cut(file: Path, draw: random.Random) -> None:
    file.write_bytes(file.read_bytes()[: draw.randrange(max(1, file.stat().st_size))])


def flip(file: Path, draw: random.Random) -> None:
    data = bytearray(file.read_bytes())
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        file.write_bytes(data)


def fill(file: Path, draw: random.Random) -> None:
    file.write_bytes(draw.randbytes(draw.choice([0, 1, 16, 300])))


def remove(file: Path, draw: random.Random) -> None:
    file.unlink()


def become_folder(file: Path, draw: random.Random) -> None:
    file.unlink()
    file.mkdir()


def become_pipe(file: Path, draw: random.Random) -> None:
    file.unlink()
    os.mkfifo(file)


def become_link(file: Path, draw: random.Random) -> None:
    file.unlink()
    file.symlink_to(draw.choice(["/dev/zero", "/nowhere", "/etc/passwd", str(file)]))


def other_shape(file: Path, draw: random.Random) -> None:
    shapes: list[object] = [None, [], 3, "text", {}, [[]], {"generation": "x"}, {"generation": -1}, {"run": 3}]
    file.write_text(json.dumps(draw.choice(shapes)) + "\n")


def alter_value(file: Path, draw: random.Random) -> None:
    """A value of JSON or TOML becomes something else, without a checksum to tell."""
    text = file.read_text(errors="replace")
    lines = [line for line in text.splitlines() if "checksum" not in line]
    at = draw.randrange(max(1, len(lines)))
    strange = draw.choice(['"x"', "null", "-1", "1e400", "NaN", "[]", "{}", "9" * 500, '"' + CANARY + ':make"', "true"])
    for mark in (": ", " = "):
        if lines and mark in lines[at]:
            end = "," if lines[at].endswith(",") else ""
            lines[at] = lines[at].partition(mark)[0] + mark + strange + end
            break
    file.write_text("\n".join(lines) + "\n")


DAMAGES: list[Callable[[Path, random.Random], None]] = [
    cut, flip, fill, remove, become_folder, become_pipe, become_link, other_shape, alter_value,
]  # fmt: skip


@many
@given(st.sampled_from(sorted(COMMANDS)), st.integers(0, 2**32), st.integers(1, 3))
def test_damaged_run_folders(command: str, seed: int, times: int) -> None:
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as place:
        run = Path(shutil.copytree(small_run(), Path(place) / "run"))
        _damage(run, draw, times)
        status_of([command, str(run), *COMMANDS[command]])


@many
@given(st.integers(0, 2**32))
def test_damaged_checkpoint_folders(seed: int) -> None:
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as place:
        folder = Path(shutil.copytree(small_run() / "checkpoints" / "000004", Path(place) / "000004"))
        _damage(folder, draw, 1)
        status_of(["eval", str(folder), *COMMANDS["eval"]])


def _damage(folder: Path, draw: random.Random, times: int) -> None:
    for _ in range(times):
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        if files:
            draw.choice(DAMAGES)(draw.choice(files), draw)
