"""Seeds side by side: how cores are shared, what each process is told, and one result in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from esker.commands.seeds import Shares, command_of, parse_seeds, shares, without
from esker.errors import UsageError

ROOT = str(Path(__file__).parent.parent)
SMALL = ["--preset", "none", "--population", "6", "--hidden", "8", "--noise", "counter", "--center-episodes", "1"]


@pytest.mark.parametrize(
    ("seeds", "cores", "jobs", "workers", "has_workers", "expected"),
    [
        (10, 16, None, None, True, Shares(10, 1)),
        (3, 16, None, None, True, Shares(3, 5)),
        (10, 2, None, None, True, Shares(2, 1)),
        (4, 1, None, None, True, Shares(1, None)),
        (10, 16, None, 4, True, Shares(4, 4)),
        (10, 16, 3, None, True, Shares(3, 5)),
        (10, 16, None, None, False, Shares(8, None)),
        (2, 1, None, None, False, Shares(1, None)),
    ],
)
def test_cores_are_shared_among_seeds(
    seeds: int, cores: int, jobs: int | None, workers: int | None, has_workers: bool, expected: Shares
) -> None:
    assert shares(seeds, cores, jobs, workers, has_workers) == expected


def test_each_process_gets_the_same_command_with_its_own_seed() -> None:
    arguments = ["CartPole-v1", "--seeds", "0..3", "--lr=0.1", "--run-dir=x", "--jobs", "2", "--quiet"]
    command = command_of(arguments, "x", 3)(2)
    assert command[1:] == [
        *("-m", "esker", "train", "CartPole-v1", "--lr=0.1"),
        *("--seed", "2", "--run-dir", str(Path("x") / "s2"), "--workers", "3"),
    ]
    assert without(["--seeds", "1", "a", "--seeds=2"], ["--seeds"]) == ["a"]


def test_seeds_are_a_range_or_a_list() -> None:
    assert (parse_seeds("2..4"), parse_seeds("5,1,5")) == ([2, 3, 4], [5, 1])
    for text in ("4..2", "a", "1..", ""):
        with pytest.raises(UsageError):
            parse_seeds(text)


def train(folder: Path, *flags: str, **process: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "esker", "train", "CartPole-v1", *SMALL, "--run-dir", "runs/all", *flags]
    environment = os.environ | {"PYTHONPATH": ROOT}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes, **process)


def test_seeds_side_by_side_give_the_runs_of_single_seeds_and_one_summary(tmp_path: Path) -> None:
    process = train(tmp_path, "--seeds", "0..1", "--workers", "2", "--generations", "2")
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    last = output.splitlines()[-1]
    assert last.startswith("2 seeds: interquartile mean ")
    single = train(tmp_path, "--seed", "1", "--generations", "2", "--run-dir", "runs/single", "--workers", "0")
    single.communicate(timeout=120)
    facts = [(tmp_path / "runs" / name / "facts").read_bytes() for name in ("all/s1", "single")]
    assert [len(data) for data in facts] == [len(facts[0])] * 2
    centers = [sorted((tmp_path / "runs" / name / "checkpoints").iterdir())[-1] for name in ("all/s1", "single")]
    assert len({(center / "state.safetensors").read_bytes() for center in centers}) == 1


def test_wrong_request_is_one_line_with_status_2(tmp_path: Path) -> None:
    process = train(tmp_path, "--seeds", "0..1", "--jobs", "2", "--population", "1")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert errors.startswith("esker: error: population is 1")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("background", [False, True])
def test_termination_saves_every_seed_as_ctrl_c_does(tmp_path: Path, background: bool) -> None:
    begin = (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if background else None  # as `command &` of a script
    process = train(tmp_path, "--seeds", "0..1", "--jobs", "2", "--generations", "1000000", preexec_fn=begin)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if all((tmp_path / "runs" / "all" / f"s{seed}" / "journal.jsonl").exists() for seed in (0, 1)):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "continue each with: esker resume" in errors
    assert {(tmp_path / "runs" / "all" / f"s{seed}" / "status").read_text() for seed in (0, 1)} == {"interrupted\n"}
