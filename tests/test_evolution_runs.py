"""Runs of esker.Evolution as runs like all others: loggers, observers, and the commands."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import esker
from esker.cli import main

FAST: dict[str, Any] = {"noise": "counter", "quiet": True, "workers": 0, "population": 4, "lr": 0.05}


def sphere(x: torch.Tensor) -> float:
    return -float((x * x).sum())


def two_layers() -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    model[2].requires_grad_(False)
    for tensor in model[2].parameters():
        tensor.data.fill_(0.5)
    return model


def output(model: nn.Module, seed: int) -> float:
    return float(model(torch.randn(4, 2)).sum().detach()) + seed % 7 / 10


class Watcher:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def begin(self, config: Any, folder: Any, rows: list[Any]) -> None:
        self.seen.append(("begin", len(rows)))

    def generation(self, row: Any, returns: Any = None) -> None:
        self.seen.append((row["generation"], len(returns)))

    def note(self, text: str) -> None:
        self.seen.append(text)

    def end(self, reason: str) -> None:
        self.seen.append(reason)


def center(run: Path) -> bytes:
    from safetensors.numpy import load_file

    found = load_file(run / "checkpoints" / (run / "latest").read_text().strip() / "state.safetensors")
    return bytes(found["center"].tobytes())


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_loggers_write_into_the_run_folder_and_continue_after_a_resume(tmp_path: Path) -> None:
    run = tmp_path / "run"
    esker.Evolution(torch.ones(3), sphere, run_dir=str(run), log=("csv", "tensorboard"), **FAST).run(2)
    esker.Evolution.resume(run, torch.ones(3), sphere).run(1)
    with (run / "metrics.csv").open() as file:
        assert [row["generation"] for row in csv.DictReader(file)] == ["0", "1", "2"]
    assert len(list((run / "tensorboard").iterdir())) >= 1


def test_loggers_without_a_run_folder_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(esker.UsageError, match="add run_dir="):
        esker.Evolution(torch.ones(3), sphere, log="csv", **FAST)
    with pytest.raises(esker.UsageError, match="nowhere_at_all"):
        esker.Evolution(torch.ones(3), sphere, log="nowhere_at_all:Logger", run_dir=str(tmp_path / "run"), **FAST)
    assert not (tmp_path / "run").exists()


def test_an_observer_is_added_to_the_lines_and_a_display_replaces_them(capsys: pytest.CaptureFixture[str]) -> None:
    for display in (False, True):
        watcher: Any = Watcher()
        watcher.is_display = display
        esker.Evolution(torch.ones(3), sphere, observer=watcher, **{**FAST, "quiet": False}).run(2, report_every=1)
        assert watcher.seen == [("begin", 0), (0, 4), (1, 4), "finished: 2 generations done"]
        assert capsys.readouterr().out.count("generation ") == (0 if display else 2)


def batch_of_lists(x: list[torch.Tensor]) -> torch.Tensor:
    return -(x[0] * x[0]).sum(-1)


@pytest.mark.parametrize("kind", ["tensor", "tensors", "module"])
def test_the_command_resumes_what_can_be_imported_to_the_bits_of_one_run(kind: str, tmp_path: Path) -> None:
    def begin(name: str) -> esker.Evolution:
        run_dir = str(tmp_path / name)
        if kind == "tensors":
            options = {name: value for name, value in FAST.items() if name != "workers"}
            return esker.Evolution([torch.ones(2)], reward_batch=batch_of_lists, run_dir=run_dir, **options)
        model, reward = (torch.ones(3), sphere) if kind == "tensor" else (two_layers, output)
        return esker.Evolution(model, reward, run_dir=run_dir, **FAST)

    begin("whole").run(5)
    begin("run").run(2)
    assert main(["resume", str(tmp_path / "run"), "--generations", "5", "--quiet"]) == 0
    assert center(tmp_path / "run") == center(tmp_path / "whole")
    assert len((tmp_path / "run" / "journal.jsonl").read_text().splitlines()) == 5


OWN = """
import os
import torch
import esker

CALLS = 0

def make():
    return torch.nn.Linear(3, 2)

def score(model, seed):
    global CALLS
    CALLS += 1
    if CALLS > int(os.environ.get("DIES_AFTER", 10**9)):
        os.kill(os.getpid(), 9)
    return -float(((model(torch.randn(5, 3)) - 1) ** 2).mean().detach())

def begin(path):
    torch.manual_seed(0)
    esker.Evolution(make, score, run_dir=path, population=6, lr=0.05, workers=0, noise="counter", quiet=True).run(8)
"""


def python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = str(Path(esker.__file__).parents[1])
    return subprocess.run(
        [sys.executable, *code.split("|")],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_killed_process_is_continued_by_the_command_to_the_same_bits(tmp_path: Path) -> None:
    """From another folder: where the module was is remembered with the run."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "own_reward_of_mine.py").write_text(OWN)
    for name, dies in (("whole", {}), ("run", {"DIES_AFTER": "30"})):
        done = python(f"-c|import own_reward_of_mine as m; m.begin('{name}')", home, **dies)
        assert done.returncode == (-9 if dies else 0), done.stderr
    committed = len((home / "run" / "journal.jsonl").read_text().splitlines())
    assert committed == 4
    done = python(f"-m|esker|resume|{home / 'run'}", elsewhere)
    assert done.returncode == 0, done.stderr
    assert "resuming at generation 4: own_reward_of_mine:score" in done.stdout
    assert "next: esker report " in done.stdout
    assert center(home / "run") == center(home / "whole")


def test_what_only_python_has_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    esker.Evolution(torch.ones(3), lambda x: sphere(x), run_dir=str(tmp_path / "a"), **FAST).run(1)
    esker.Evolution(two_layers(), output, run_dir=str(tmp_path / "b"), **FAST).run(1)
    assert "whose reward (reward function) only Python has" in refusal(capsys, "resume", tmp_path / "a")
    assert "esker.Evolution(make_model, reward)" in refusal(capsys, "resume", tmp_path / "b")
    for command in ("eval", "render", "export", "card"):
        assert "whose model is not a policy" in refusal(capsys, command, tmp_path / "b")
    assert "esker.Evolution(model, reward)" in refusal(capsys, "train", "CartPole-v1", "--algo", "function")


def test_another_frozen_part_is_refused_on_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    esker.Evolution(two_layers, output, run_dir=str(tmp_path / "run"), **FAST).run(1)
    monkeypatch.setattr(torch.Tensor, "fill_", lambda tensor, value: tensor.zero_())
    with pytest.raises(esker.UsageError, match="other frozen parameters or buffers"):
        esker.resume(tmp_path / "run", generations=2)


def test_a_run_from_elsewhere_imports_nothing_without_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    esker.Evolution(torch.ones(3), sphere, strategy="test_evolution_runs:Mine", run_dir=str(tmp_path / "run"), **FAST).run(1)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    with pytest.raises(esker.UsageError, match=r"its env would import and run 'test_evolution_runs:sphere'"):
        esker.resume(tmp_path / "run", trust=["test_evolution_runs:Mine"])
    with pytest.raises(esker.UsageError, match=r"its strategy would import and run 'test_evolution_runs:Mine'"):
        esker.Evolution.resume(tmp_path / "run", torch.ones(3), sphere)
    with pytest.raises(esker.UsageError, match="is not a policy"):
        esker.load(tmp_path / "run")
    again = esker.Evolution.resume(tmp_path / "run", torch.ones(3), sphere, trust=["test_evolution_runs"])
    assert again.iteration == 1


class Mine(esker.OpenAIES):
    pass


def test_report_plot_and_runs_show_such_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    esker.Evolution(torch.ones(3), sphere, run_dir=str(tmp_path / "run"), **FAST).run(3)
    assert main(["runs", str(tmp_path), "--json"]) == 0
    assert '"env": "test_evolution_runs:sphere"' in capsys.readouterr().out
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "page.html")]) == 0
    assert "test_evolution_runs:sphere" in (tmp_path / "page.html").read_text()
    assert main(["plot", str(tmp_path / "run"), "-o", str(tmp_path / "curve.svg")]) == 0
    assert (tmp_path / "curve.svg").stat().st_size > 1000


def test_a_coordinator_goes_on_with_what_it_is_sent_to_the_same_bits(tmp_path: Path) -> None:
    """What a cluster's coordinator does, in this process: it gets the layout by message, the values from the folder."""
    from dataclasses import replace

    from esker.cluster.coordinator import _unpack
    from esker.cluster.functions import pack_problem
    from esker.functions.algorithm import FUNCTION
    from esker.logs.console import Quiet
    from esker.runs import runner, session
    from esker.runs.folder import RunFolder

    esker.Evolution(two_layers, output, run_dir=str(tmp_path / "whole"), **FAST).run(5)
    evolution = esker.Evolution(two_layers, output, run_dir=str(tmp_path / "run"), **FAST)
    before = [tensor.clone() for tensor in evolution.model.parameters()]
    packed = pack_problem(evolution._session.environment, evolution._state, pytest.fail)
    assert packed is not None
    assert all(torch.equal(a, b) for a, b in zip(before, evolution.model.parameters(), strict=True))
    folder = RunFolder.open(tmp_path / "run")
    folder.lock()
    config = replace(folder.config(lambda name: FUNCTION.config), generations=5)
    runner.run(session.resume(folder, FUNCTION, config, _unpack(packed), []), Quiet())
    assert center(tmp_path / "run") == center(tmp_path / "whole")


def test_values_that_move_are_no_part_of_the_message_and_large_frozen_ones_keep_the_loop_here() -> None:
    from esker.cluster.functions import pack_problem
    from esker.cluster.submit import MOST_PACKED

    notes: list[str] = []
    for frozen in (False, True):
        model = nn.Sequential(nn.Linear(400, 400), nn.Linear(400, 1))
        model[0].requires_grad_(not frozen)
        evolution = esker.Evolution(model, output, **FAST)
        packed = pack_problem(evolution._session.environment, evolution._state, notes.append)
        assert (packed is None) == frozen
        assert packed is None or len(packed) < MOST_PACKED
    assert ["the loop stays in this process" in note for note in notes] == [True]
