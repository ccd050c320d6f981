"""Faults: nothing finished is lost, no wrong update is silent, and the message says how to continue."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import esker
from esker.errors import RunError

Cli = Callable[..., "subprocess.CompletedProcess[str]"]
SMALL = ["--population", "6", "--generations", "3", "--center-episodes", "1", "--hidden", "4", "--table-size", "10000"]


def faulty(fault: str, **more: object) -> list[str]:
    return ["train", "worlds:Faulty", "--env-kwargs", json.dumps({"fault": fault, **more}), "--run-dir", "run", *SMALL]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise", "RuntimeError: the robot fell over"),
        ("reset", "RuntimeError: cannot reset"),
        ("exit", "SystemExit: 3"),
        ("nan", "the return of the episode is nan"),
        ("shape", "observation has shape (1,); expected (3,)"),
    ],
)
def test_a_failing_environment_stops_the_run_naming_environment_member_and_seed(
    cli: Cli, tmp_path: Path, fault: str, message: str
) -> None:
    done = cli(*faulty(fault), "--workers", 2)
    assert done.returncode == 1
    assert message in done.stderr
    assert "worlds:Faulty, generation 0, " in done.stderr
    assert ", seed " in done.stderr
    assert "esker resume run" in done.stderr
    assert not (tmp_path / "run" / "facts").exists()  # the generation stays uncommitted


@pytest.mark.parametrize(
    ("fault", "message"), [("raise", "RuntimeError: the robot fell over"), ("hang", "took longer than 1 s")]
)
def test_an_environment_that_fails_at_first_sight_is_a_clear_failure(cli: Cli, fault: str, message: str) -> None:
    done = cli(*faulty(fault, first=True), "--step-timeout", 1)
    assert done.returncode == 1
    assert "worlds:Faulty" in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_repaired_environment_lets_the_run_resume(cli: Cli, tmp_path: Path) -> None:
    once = tmp_path / "happened"
    assert cli(*faulty("raise", once=str(once)), "--workers", 1).returncode == 1
    done = cli("resume", "run")
    assert (done.returncode, done.stderr) == (0, "")
    assert len((tmp_path / "run" / "journal.jsonl").read_text().splitlines()) == 3


def test_with_on_error_worst_failed_members_rank_last_and_are_counted(cli: Cli, tmp_path: Path) -> None:
    done = cli(*faulty("raise", of=3), "--on-error", "worst", "--population", 24, "--no-antithetic", "--seed", 1)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert 0 < sum(row["failed_members"] for row in rows) < 72
    assert {row["return_max"] for row in rows} == {16.0}


def test_when_every_member_fails_nothing_is_committed(cli: Cli, tmp_path: Path) -> None:
    done = cli(*faulty("raise"), "--on-error", "worst")
    assert done.returncode == 1
    assert "the robot fell over" in done.stderr
    assert not (tmp_path / "run" / "facts").exists()


def test_a_worker_killed_in_mid_episode_is_replaced_and_its_members_evaluated_again(cli: Cli, tmp_path: Path) -> None:
    disturbed = cli(*faulty("kill", once=str(tmp_path / "happened")), "--workers", 2)
    assert disturbed.returncode == 0, disturbed.stderr
    assert (tmp_path / "happened").exists()
    calm = ["train", "worlds:Faulty", "--env-kwargs", '{"fault": "none"}', "--run-dir", "calm", *SMALL]
    assert cli(*calm).returncode == 0
    assert esker.load(tmp_path / "run", 3).parameters.tobytes() == esker.load(tmp_path / "calm", 3).parameters.tobytes()


@pytest.mark.parametrize(("fault", "ended"), [("kill", "by SIGKILL (out of memory?)"), ("leave", "with status 7")])
def test_a_member_that_ends_its_worker_three_times_stops_the_run(cli: Cli, fault: str, ended: str) -> None:
    done = cli(*faulty(fault, of=5), "--workers", 2)
    assert done.returncode == 1
    assert f"ended {ended}, 3 times in a row" in done.stderr
    assert "esker resume run" in done.stderr


def test_a_hanging_step_is_evaluated_again_elsewhere(cli: Cli, tmp_path: Path) -> None:
    done = cli(*faulty("hang", once=str(tmp_path / "happened")), "--workers", 2, "--step-timeout", 1)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "happened").exists()


def test_a_step_that_hangs_three_times_stops_the_run_and_never_becomes_a_fitness(cli: Cli, tmp_path: Path) -> None:
    done = cli(*faulty("hang", of=5), "--workers", 1, "--step-timeout", 0.5)
    assert done.returncode == 1
    assert "a step took longer than 0.5 s, 3 times in a row" in done.stderr
    rows = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    assert all(row["return_min"] == 16.0 for row in rows)


def test_a_slow_step_within_the_timeout_is_left_alone(cli: Cli) -> None:
    done = cli(*faulty("slow"), "--workers", 1, "--step-timeout", 1)
    assert done.returncode == 0, done.stderr


def test_a_full_disk_stops_the_run_and_keeps_what_was_committed(cli: Cli, tmp_path: Path) -> None:
    """A limit on file sizes stands for the full disk: the write fails in the same way, in the middle of a record."""
    run = ["train", "worlds:Corridor", "--run-dir", "run", "--noise", "counter", "--workers", "0", *SMALL[:-2]]
    limit = 6000

    done = cli(*run, "--generations", 200, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 1
    assert "could not be committed: File too large" in done.stderr or "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    committed = len((tmp_path / "run" / "journal.jsonl").read_text().splitlines())
    assert committed > 0
    resumed = cli("resume", "run", "--generations", committed + 2)
    assert resumed.returncode == 0, resumed.stderr
    calm = cli(*[part if part != "run" else "calm" for part in run], "--generations", committed + 2)
    assert calm.returncode == 0
    last = committed + 2
    assert (
        esker.load(tmp_path / "run", last).parameters.tobytes() == esker.load(tmp_path / "calm", last).parameters.tobytes()
    )


def test_an_environment_that_workers_cannot_make_is_a_clear_failure(tmp_path: Path) -> None:
    import os

    parent = os.getpid()

    def only_here() -> object:
        from worlds import Corridor

        if os.getpid() != parent:
            raise RuntimeError("no licence on this machine")
        return Corridor()

    with pytest.raises(RunError, match="no licence on this machine"):
        esker.train(only_here, run_dir=str(tmp_path / "run"), workers=1, population=4, generations=1, quiet=True)  # type: ignore[arg-type]
