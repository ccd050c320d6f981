"""The same seed gives the same bits: any workers, any slots, any crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import HERE, center

import esker
from esker.engines.local import LocalEngine
from esker.runs import checkpoints
from esker.runs.folder import RunFolder

OPTIONS: dict[str, Any] = {
    "preset": None,
    "population": 12,
    "sigma": 0.1,
    "lr": 0.05,
    "generations": 6,
    "center_episodes": 2,
    "table_size": 100_000,
    "hidden": (16,),
    "checkpoint_every": 2,
    "quiet": True,
    "seed": 3,
}


def train(path: Path, **changes: Any) -> esker.Run:
    return esker.train("CartPole-v1", **(OPTIONS | {"run_dir": str(path)} | changes))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> esker.Run:
    """An undisturbed run, in one process."""
    return train(tmp_path_factory.mktemp("reference") / "run", workers=0)


@pytest.mark.parametrize(("workers", "slots"), [(0, 1), (0, 5), (1, 32), (2, 4), (3, 32)])
def test_workers_and_slots_do_not_change_a_bit(reference: esker.Run, tmp_path: Path, workers: int, slots: int) -> None:
    run = train(tmp_path / "run", workers=workers, slots=slots)
    assert center(run).tobytes() == center(reference).tobytes()
    same = ("return_mean", "center_return", "center_rank", "env_steps", "gradient_norm")
    assert [[row[k] for k in same] for row in run.history] == [[row[k] for k in same] for row in reference.history]


def test_counter_noise_is_exact_too_and_differs_from_the_table(reference: esker.Run, tmp_path: Path) -> None:
    one = train(tmp_path / "one", workers=0, noise="counter")
    two = train(tmp_path / "two", workers=2, noise="counter", slots=3)
    assert center(one).tobytes() == center(two).tobytes() != center(reference).tobytes()


def test_another_seed_gives_other_bits(reference: esker.Run, tmp_path: Path) -> None:
    assert center(train(tmp_path / "run", workers=0, seed=4)).tobytes() != center(reference).tobytes()


def test_seed_zero_is_a_seed_like_any_other(tmp_path: Path) -> None:
    one, two = train(tmp_path / "a", workers=0, seed=0), train(tmp_path / "b", workers=0, seed=0)
    assert center(one).tobytes() == center(two).tobytes()


def test_a_minimum_of_steps_gives_the_same_generation_to_any_number_of_workers(tmp_path: Path) -> None:
    runs = [train(tmp_path / f"{w}-{s}", workers=w, slots=s, min_steps=2000) for w, s in ((0, 1), (0, 7), (2, 5))]
    assert len({center(run).tobytes() for run in runs}) == 1
    assert any(row["members"] > 12 for row in runs[0].history)
    assert all(row["discarded_steps"] == 0 for row in runs[0].history)  # one slot never overshoots


def test_a_killed_worker_does_not_change_a_bit(
    reference: esker.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    evaluate = LocalEngine.evaluate

    def with_murder(self: LocalEngine, job: Any, plan: Any) -> None:
        def kill() -> None:
            victim = self.pids[0]
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

        if job.generation in (1, 3):
            threading.Timer(0.002, kill).start()
        evaluate(self, job, plan)

    monkeypatch.setattr(LocalEngine, "evaluate", with_murder)
    run = train(tmp_path / "run", workers=2)
    assert len(killed) == 2
    assert center(run).tobytes() == center(reference).tobytes()


def start_training(path: Path, *more: str) -> subprocess.Popen[str]:
    arguments = ["--preset", "none", "--population", "12", "--sigma", "0.1", "--lr", "0.05", "--generations", "6"]
    arguments += ["--center-episodes", "2", "--table-size", "100000", "--hidden", "16", "--checkpoint-every", "2"]
    arguments += ["--seed", "3", "--workers", "1", "--run-dir", str(path), *more]
    environment = os.environ | {"PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE}"}
    command = [sys.executable, "-m", "esker", "train", "CartPole-v1", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(generation=st.integers(0, 4), delay=st.floats(0, 0.05))
def test_training_killed_anywhere_resumes_to_the_same_bits(
    reference: esker.Run, tmp_path_factory: pytest.TempPathFactory, generation: int, delay: float
) -> None:
    path = tmp_path_factory.mktemp("killed") / "run"
    process = start_training(path)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(f"generation {generation} "):
            break
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    run = esker.resume(path, quiet=True, workers=0)
    assert center(run).tobytes() == center(reference).tobytes()
    assert [row["generation"] for row in run.history] == list(range(6))


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    process = start_training(tmp_path / "run", "--generations", "100000")
    assert process.stdout is not None
    next(line for line in process.stdout if line.startswith("generation 0"))
    children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() and "Z" not in state(pid) for pid in children):
        assert time.monotonic() < deadline, "a worker outlived its parent"
        time.sleep(0.05)
    assert children


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def test_an_interrupted_run_is_saved_and_resumes_to_the_same_bits(reference: esker.Run, tmp_path: Path) -> None:
    process = start_training(tmp_path / "run")
    assert process.stdout is not None
    next(line for line in process.stdout if line.startswith("generation 1"))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    if process.returncode == 0:
        pytest.skip("training was faster than the signal")
    assert process.returncode == 130
    assert f"esker resume {tmp_path / 'run'}" in errors
    assert "Traceback" not in errors
    assert RunFolder.open(tmp_path / "run").status() == "interrupted"
    run = esker.resume(tmp_path / "run", quiet=True, workers=0)
    assert center(run).tobytes() == center(reference).tobytes()


def test_an_extended_run_equals_one_that_was_long_from_the_start(tmp_path: Path) -> None:
    long = train(tmp_path / "long", workers=0, generations=8)
    short = train(tmp_path / "short", workers=0, generations=5)
    extended = esker.resume(short.path, quiet=True, generations=8)
    assert center(extended).tobytes() == center(long).tobytes()
    assert extended.config.generations == 8


def damaged_copy(reference: esker.Run, path: Path) -> RunFolder:
    import shutil

    shutil.copytree(reference.path, path)
    return RunFolder.open(path)


@pytest.mark.parametrize("damage", ["cut", "altered", "missing", "no-json", "all-but-first", "every-one"])
def test_a_damaged_checkpoint_costs_nothing_and_is_reported(reference: esker.Run, tmp_path: Path, damage: str) -> None:
    folder = damaged_copy(reference, tmp_path / "run")
    newest = folder.checkpoints / checkpoints.folder_name(6)
    weights = newest / "state.safetensors"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:100])
    elif damage == "altered":
        data = bytearray(weights.read_bytes())
        data[-5] ^= 1
        weights.write_bytes(data)
    elif damage == "missing":
        weights.unlink()
    elif damage == "no-json":
        (newest / "state.json").write_text("{")
    else:
        for generation in checkpoints.generations(folder.checkpoints):
            if generation > 0 or damage == "every-one":
                (folder.checkpoints / checkpoints.folder_name(generation) / "state.json").write_text("")
    said: list[str] = []
    run = esker.resume(folder.path, observer=Recorder(said), generations=8)
    assert any("checkpoint 000006" in text for text in said)
    again = esker.resume(damaged_copy(reference, tmp_path / "intact").path, quiet=True, generations=8)
    assert center(run).tobytes() == center(again).tobytes()


class Recorder:
    """An observer that keeps the notes."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def begin(self, *arguments: Any) -> None: ...
    def generation(self, row: Any, *more: Any) -> None: ...
    def end(self, reason: str) -> None: ...

    def note(self, text: str) -> None:
        self.said.append(text)


def test_facts_cut_in_mid_record_lose_only_that_generation(reference: esker.Run, tmp_path: Path) -> None:
    folder = damaged_copy(reference, tmp_path / "run")
    folder.facts_file.write_bytes(folder.facts_file.read_bytes()[:-10])
    said: list[str] = []
    run = esker.resume(folder.path, observer=Recorder(said), workers=0)
    assert any("cut back to 5 committed generations" in text for text in said)
    assert center(run).tobytes() == center(reference).tobytes()
    assert [row["generation"] for row in run.history] == list(range(6))


@pytest.mark.parametrize("keep", [0, 2, 5])
def test_a_journal_cut_in_mid_line_is_rewritten_from_the_facts(reference: esker.Run, tmp_path: Path, keep: int) -> None:
    folder = damaged_copy(reference, tmp_path / "run")
    lines = folder.journal_file.read_text().splitlines(keepends=True)
    folder.journal_file.write_text("".join(lines[:keep]) + lines[keep][:20])
    run = esker.resume(folder.path, quiet=True)
    assert run.history == [json.loads(line) for line in lines]


def test_any_generation_can_be_loaded_after_its_snapshot_is_gone(reference: esker.Run, tmp_path: Path) -> None:
    run = train(tmp_path / "run", workers=0, keep=1)
    assert checkpoints.generations(run.folder.checkpoints) != checkpoints.generations(reference.folder.checkpoints)
    assert center(run, 2).tobytes() == center(reference, 2).tobytes()
    assert center(run, 3).tobytes() == center(run, "3").tobytes() != center(run, 2).tobytes()


def test_the_best_checkpoint_of_a_run_with_few_episodes_is_the_center_it_ended_with(reference: esker.Run) -> None:
    final = json.loads((reference.path / "final.json").read_text())
    assert reference.best_return == final["best_mean"]
    assert checkpoints.pointed(reference.folder.best_file) == final["generation"] == len(reference.history)
    assert center(reference, "best").tobytes() == center(reference, final["generation"]).tobytes()


def test_two_processes_cannot_train_in_one_folder(reference: esker.Run, tmp_path: Path) -> None:
    folder = damaged_copy(reference, tmp_path / "run")
    folder.lock()
    with pytest.raises(esker.UsageError, match="in use by another process"):
        esker.resume(folder.path, quiet=True)
    folder.unlock()


def test_a_machine_that_computes_other_bits_is_refused_unless_told(reference: esker.Run, tmp_path: Path) -> None:
    folder = damaged_copy(reference, tmp_path / "run")
    about = folder.about() | {"fingerprint": "0123456789abcdef"}
    folder.about_file.write_text(json.dumps(about))
    with pytest.raises(esker.UsageError, match="--inexact"):
        esker.resume(folder.path, quiet=True, generations=7)
    assert len(esker.resume(folder.path, quiet=True, generations=7, inexact=True).history) == 7


def test_an_environment_that_repeats_only_on_a_new_instance_gets_one_for_every_episode(tmp_path: Path) -> None:
    small: dict[str, Any] = {"population": 6, "generations": 3, "max_episode_steps": 60, "noise": "counter", "quiet": True}
    one, many = (
        esker.train("BipedalWalker-v3", run_dir=str(tmp_path / str(slots)), workers=0, slots=slots, **small)
        for slots in (1, 3)
    )
    assert one.config.fresh_environments
    assert center(one).tobytes() == center(many).tobytes()
    reused = esker.train(
        "BipedalWalker-v3", run_dir=str(tmp_path / "reused"), workers=0, slots=3, fresh_environments=False, **small
    )
    assert not reused.config.fresh_environments
