"""`esker runs`: every run is found, with its true status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import esker
from esker.cli import main

SMALL: dict[str, Any] = {
    "preset": None,
    "quiet": True,
    "population": 6,
    "hidden": "8",
    "workers": 0,
    "table_size": 10_000,
    "center_episodes": 1,
}


def listing(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["runs", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def started(path: Path) -> subprocess.Popen[bytes]:
    """A run in its own process, past its first generation."""
    flags = ["--population", "6", "--hidden", "8", "--workers", "0", "--table-size", "10000", "--generations", "1000000"]
    command = [sys.executable, "-m", "esker.cli", "train", "CartPole-v1", "--preset", "none", "--quiet", *flags]
    process = subprocess.Popen([*command, "--run-dir", str(path)], env=os.environ | {"PYTHONPATH": os.getcwd()})
    deadline = time.monotonic() + 300
    while not (path / "journal.jsonl").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_status_tells_running_interrupted_crashed_and_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    esker.train("CartPole-v1", run_dir=str(tmp_path / "done"), generations=2, **SMALL)
    processes = {name: started(tmp_path / name) for name in ("crashed", "interrupted")}
    seen = {Path(run["path"]).name: run["status"] for run in listing(capsys, str(tmp_path))}
    assert seen == {"done": "finished", "crashed": "running", "interrupted": "running"}
    processes["crashed"].send_signal(signal.SIGKILL)
    processes["interrupted"].send_signal(signal.SIGINT)
    for process in processes.values():
        process.wait(30)
    seen = {Path(run["path"]).name: run["status"] for run in listing(capsys, str(tmp_path))}
    assert seen == {"done": "finished", "crashed": "crashed", "interrupted": "interrupted"}


def test_a_run_is_summarised_by_its_last_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = esker.train("CartPole-v1", run_dir=str(tmp_path / "deep" / "run"), generations=3, seed=7, **SMALL)
    (entry,) = listing(capsys, str(tmp_path))
    last = run.history[-1]
    assert (entry["env"], entry["algo"], entry["seed"], entry["generation"]) == ("CartPole-v1", "es", 7, 3)
    assert (entry["best"], entry["env_steps"]) == (run.best_return, last["env_steps"])
    assert entry["reason"] == "3 generations done"
    assert 0 <= entry["idle"] <= entry["age"] < 60


def test_runs_are_sorted_best_first_and_turned_around(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(3):
        esker.train("CartPole-v1", run_dir=str(tmp_path / f"s{seed}"), generations=1, seed=seed, **SMALL)
    best = [run["best"] for run in listing(capsys, str(tmp_path), "--sort", "best")]
    assert best == sorted(best, reverse=True)
    assert [run["seed"] for run in listing(capsys, str(tmp_path), "--sort", "seed", "--reverse")] == [2, 1, 0]


def test_a_damaged_run_is_listed_and_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bad", "good"):
        esker.train("CartPole-v1", run_dir=str(tmp_path / name), generations=1, **SMALL)
    (tmp_path / "bad" / "config.toml").write_text("population = = 3")
    seen = {Path(run["path"]).name: run["status"] for run in listing(capsys, str(tmp_path))}
    assert seen == {"bad": "damaged", "good": "finished"}


def test_a_folder_that_is_none_is_refused_and_an_empty_one_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", str(tmp_path / "nowhere")]) == 2
    assert "is not a folder" in capsys.readouterr().err
    assert main(["runs", str(tmp_path)]) == 0
    assert "no runs under" in capsys.readouterr().out


def test_the_table_names_the_columns_people_look_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    esker.train("CartPole-v1", run_dir=str(tmp_path / "run"), generations=1, **SMALL)
    assert main(["runs", str(tmp_path)]) == 0
    header, line = capsys.readouterr().out.splitlines()[:2]
    assert header.split() == ["run", "environment", "algo", "seed", "generation", "steps", "best", "status", "age"]
    assert line.split()[:3] == [str(tmp_path / "run"), "CartPole-v1", "es"]


def test_a_run_of_evolution_is_listed_among_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"workers": 0, "noise": "counter", "quiet": True, "run_dir": str(tmp_path / "f")}
    esker.Evolution(torch.zeros(3), lambda model: -float((model**2).sum()), **options).run(2)
    (entry,) = listing(capsys, str(tmp_path))
    assert (entry["env"], entry["algo"], entry["generation"], entry["status"]) == (
        "reward function",
        "function",
        2,
        "finished",
    )
