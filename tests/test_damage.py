"""Damaged run folders: every file that decides a result is checked, intact parts are kept, and damage is reported."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import QUICK, small_run

import esker
from esker.cli import main
from esker.errors import UsageError
from esker.runs import checkpoints, pointers
from esker.runs.facts import scan
from esker.runs.folder import RunFolder
from esker.runs.repair import repair

LONG: dict[str, Any] = {"generations": 12, "checkpoint_every": 4, "keep": None}
HYBRID: dict[str, Any] = {
    "algo": "cem-rl",
    "hidden": (8, 8),
    "batch_size": 8,
    "initial_steps": 40,
    "center_episodes": 2,
    "quiet": True,
    "checkpoint_every": 1,
    "keep": None,
    "workers": 0,
    "population": 4,
    "rl_population": 2,
}


def copy(tmp_path: Path, source: Path | None = None) -> Path:
    """A copy of a run to damage."""
    return Path(shutil.copytree(source or small_run(**LONG), tmp_path / "run"))


def flip(file: Path, at: int, bit: int = 0) -> None:
    """Turn one bit over."""
    data = bytearray(file.read_bytes())
    data[at] ^= 1 << bit
    file.write_bytes(data)


def center(path: Path, checkpoint: str | int = "latest") -> bytes:
    return esker.load(path, checkpoint).parameters.tobytes()


def grown(generations: int = 13) -> bytes:
    """The parameters of the undamaged run after some more generations."""
    target = small_run(**LONG).parent / f"grown-{generations}"
    if not target.exists():
        shutil.copytree(small_run(**LONG), target)
        esker.resume(target, generations=generations)
    return center(target)


@pytest.mark.parametrize("name", ["config.toml", "about.json", "checkpoints/000012/state.json"])
def test_no_flipped_bit_in_a_text_file_changes_the_result(name: str, tmp_path: Path) -> None:
    """Each flip is detected: the run continues from an intact copy or an older snapshot, to the same parameters."""
    draw = random.Random(name)
    size = (small_run(**LONG) / name).stat().st_size
    for number, at in enumerate(draw.sample(range(size), 6)):
        path = Path(shutil.copytree(small_run(**LONG), tmp_path / str(number)))
        flip(path / name, at, draw.randrange(8))
        run = esker.resume(path, generations=13)
        assert center(run.path) == grown(), (at, (small_run(**LONG) / name).read_bytes()[at])


def test_every_bit_of_a_snapshot_is_under_its_checksum(tmp_path: Path) -> None:
    source = small_run(**LONG) / "checkpoints" / "000012"
    text = (source / "state.json").read_bytes()
    folder = Path(shutil.copytree(source, tmp_path / "000012"))
    for at in range(len(text)):
        for bit in (0, 3, 5):
            (folder / "state.json").write_bytes(text[:at] + bytes([text[at] ^ 1 << bit]) + text[at + 1 :])
            try:
                read = checkpoints.read(folder)
            except checkpoints.DamagedCheckpoint:
                continue
            assert read.values == checkpoints.read(source).values, (at, bit)  # white space


def test_snapshots_without_checksums_of_older_versions_are_read(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small_run(**LONG) / "checkpoints" / "000012", tmp_path / "000012"))
    values = json.loads((folder / "state.json").read_text())
    for name in ("checksum", "run"):
        del values[name]
    (folder / "state.json").write_text(json.dumps(values, indent=1))
    assert checkpoints.read(folder).generation == 12


def test_a_snapshot_of_another_run_or_generation_is_not_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = copy(tmp_path), small_run(seed=1, **LONG)
    shutil.rmtree(path / "checkpoints" / "000012")
    shutil.copytree(other / "checkpoints" / "000012", path / "checkpoints" / "000012")
    shutil.copytree(path / "checkpoints" / "000004", path / "checkpoints" / "000011", dirs_exist_ok=True)
    assert center(esker.resume(path, generations=13).path) == grown()
    said = capsys.readouterr().err
    assert "000012: it is of another run" in said
    assert "000011: it holds generation 4" in said


@pytest.mark.parametrize("damage", ["empty", "missing", "cut"])
def test_a_lost_configuration_is_restored_from_a_checkpoint_and_reported(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy(tmp_path)
    config = path / "config.toml"
    whole = config.read_bytes()
    config.unlink() if damage == "missing" else config.write_bytes(whole[: 0 if damage == "empty" else 100])
    assert main(["eval", str(path), "--episodes", "1", "--workers", "0"]) == 0
    assert "config.toml cannot be used" in capsys.readouterr().err
    assert center(esker.resume(path, generations=13).path) == grown()
    assert "using the copy in checkpoint 000012" in capsys.readouterr().err
    assert esker.Run(path).config.generations == 13


def test_a_bad_record_of_facts_costs_nothing_where_a_later_snapshot_is_intact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy(tmp_path)
    records = RunFolder(path).scan().records
    flip(path / "facts", (records[3].start + records[3].end) // 2)
    damaged = (path / "facts").read_bytes()
    assert center(path) == center(small_run(**LONG))
    run = esker.resume(path, generations=13)
    assert center(path) == grown()
    said = capsys.readouterr().err
    assert "are damaged; the records of generation 3 are lost; continuing with 12 committed generations" in said
    assert (path / "facts.damaged-1").read_bytes() == damaged
    assert sorted(RunFolder(path).scan().records) == [0, 1, 2, *range(4, 13)]
    assert [row["generation"] for row in run.history] == list(range(13))
    for number in checkpoints.generations(path / "checkpoints")[1:-1]:
        shutil.rmtree(path / "checkpoints" / f"{number:06d}")
    with pytest.raises(esker.RunError, match="the facts of generation 3 are lost"):
        esker.load(path, 5)


def test_doubled_and_foreign_records_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = copy(tmp_path), small_run(seed=1, **LONG)
    data, foreign = (path / "facts").read_bytes(), (other / "facts").read_bytes()
    first, theirs = RunFolder(path).scan().records[0], RunFolder(other).scan().records[12 - 1]
    (path / "facts").write_bytes(data[: first.end] * 2 + data[first.end :] + foreign[theirs.start : theirs.end])
    assert center(esker.resume(path, generations=13).path) == grown()
    said = capsys.readouterr().err
    assert "generation 0 is there twice" in said
    assert "is of another run" in said


def test_lost_facts_with_an_intact_snapshot_lose_nothing(tmp_path: Path) -> None:
    path = copy(tmp_path)
    (path / "facts").unlink()
    assert center(esker.resume(path, generations=13).path) == grown()
    assert center(esker.resume(path, generations=14).path) == grown(14)


def test_no_flipped_bit_in_facts_changes_the_result(tmp_path: Path) -> None:
    data = (small_run(**LONG) / "facts").read_bytes()
    intact = scan(data)
    draw = random.Random(0)
    for at in draw.sample(range(len(data)), 200):
        found = scan(data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :])
        assert len(found.records) == 11
        assert found.records.items() <= intact.records.items()


@pytest.mark.parametrize("damage", ["missing", "text", "flip"])
def test_a_best_that_cannot_be_read_is_reported(damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy(tmp_path)
    best = path / "best"
    before = center(path, "best")
    best.unlink() if damage == "missing" else best.write_text("xx\n" if damage == "text" else "900000\n")
    assert center(path, "best") == before
    assert main(["eval", str(path), "--episodes", "1", "--workers", "0"]) == 0
    assert f"best is {'missing' if damage == 'missing' else 'damaged'}: by the journal it is generation" in (
        capsys.readouterr().err
    )


def test_a_flipped_bit_in_latest_changes_nothing(tmp_path: Path) -> None:
    path = copy(tmp_path)
    latest, snapshots = path / "latest", checkpoints.generations(path / "checkpoints")
    whole = latest.read_bytes()
    for bit in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        latest.write_bytes(flipped)
        known = checkpoints.pointed(latest) in snapshots
        notice = [] if known else ["latest is damaged: using the newest, generation 12"]
        assert pointers.wanted(RunFolder(path), "latest", 12) == (12, notice)


def test_a_best_that_names_another_snapshot_is_reported_and_repaired(tmp_path: Path) -> None:
    path = copy(tmp_path)
    best = path / "best"
    right = best.read_text()
    others = [number for number in checkpoints.generations(path / "checkpoints") if number != int(right)]
    assert len(others) > 2
    for number in others:
        best.write_text(f"{checkpoints.folder_name(number)}\n")
        notice = [f"best is damaged: by the journal it is generation {int(right)}"]
        assert pointers.wanted(RunFolder(path), "best", 12) == (int(right), notice)
    assert repair(RunFolder(path)) == notice
    assert best.read_text() == right


@pytest.mark.parametrize("name", ["config.toml", "about.json", "facts", "journal.jsonl", "best", "status"])
def test_a_file_too_large_for_memory_is_not_read(name: str, tmp_path: Path) -> None:
    """A sparse file of a terabyte takes no room on the disk."""
    path = copy(tmp_path)
    with (path / name).open("ab") as file:
        file.truncate(10**12)
    assert main(["report", str(path)]) == 0
    assert main(["resume", str(path), "--generations", "13", "--workers", "0", "--quiet"]) == 0
    assert center(path) == grown()


ABOUTS = [
    {"run": 3},
    {"parameters": []},
    {"observation_space": 1, "action_space": {}},
    {"observation_space": {"kind": "Box"}, "action_space": {"kind": "Discrete", "n": "x"}},
    {"observation_space": {"kind": "Box"}, "action_space": {"kind": "Tuple", "spaces": 3}},
]


@pytest.mark.parametrize("about", ABOUTS)
def test_a_checkpoint_folder_that_describes_no_spaces_is_refused_in_one_line(
    about: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(small_run(**LONG) / "checkpoints" / "000012", tmp_path / "000012"))
    (folder / "about.json").write_text(json.dumps(about))
    assert main(["eval", str(folder), "--episodes", "1", "--workers", "0"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "space" in said


CHANGES = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree")  # of files, as auditing names them


def killed_at(step: int, work: Callable[[], None]) -> bool:
    """Do something in a process that is killed just before its Nth change of a file; returns whether it got that far."""
    if (pid := os.fork()) == 0:
        steps = itertools.count(1)
        sys.addaudithook(lambda event, _: os._exit(9) if event in CHANGES and next(steps) == step else None)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


def test_a_kill_at_any_step_of_replacing_the_newest_snapshot_loses_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    folder = RunFolder(copy(tmp_path))
    before = checkpoints.read(folder.checkpoints / "000012")
    for step in itertools.count(1):
        struck = killed_at(step, lambda: folder.checkpoint(before, latest=True))
        folder.lock()  # as the next process that works in the folder does
        folder.unlock()
        assert (
            checkpoints.read(folder.checkpoints / "000012").arrays["center"].tobytes() == before.arrays["center"].tobytes()
        )
        assert not list(folder.checkpoints.glob(".*")), step
        if not struck:
            break
    assert step > 15


def test_a_killed_beginning_can_be_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "run"
    (path / "checkpoints").mkdir(parents=True)
    shutil.copy(small_run() / "about.json", path / "about.json")
    (path / "lock").touch()
    assert len(esker.train("CartPole-v1", run_dir=str(path), **QUICK, generations=1).history) == 1


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hybrid") / "run"
    esker.train("hybrid_worlds:Reach", run_dir=str(path), generations=4, **HYBRID)
    return path


def test_a_flipped_bit_in_the_used_part_of_the_replay_is_seen(
    hybrid: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    intact = copy(tmp_path / "a", hybrid)
    esker.resume(intact, generations=5)
    path = copy(tmp_path / "b", hybrid)
    state = checkpoints.read(path / "checkpoints" / "000004")
    width = 2 * 2 + 1 + 2
    flip(path / "replay", (state.values["progress"]["training_steps"] - 1) * width * 4 + 2)
    esker.resume(path, generations=5)
    assert "checkpoint 000004: the transitions from 0 on that it learned from are damaged" in capsys.readouterr().err
    assert center(path) == center(intact)


def test_a_damaged_replay_without_an_older_snapshot_is_refused(hybrid: Path, tmp_path: Path) -> None:
    path = copy(tmp_path, hybrid)
    flip(path / "replay", 40)
    with pytest.raises(UsageError, match="copy that file from a backup"):
        esker.resume(path, generations=5)


def test_unused_rows_of_the_replay_do_not_matter(hybrid: Path, tmp_path: Path) -> None:
    path = copy(tmp_path, hybrid)
    flip(path / "replay", (path / "replay").stat().st_size - 1)
    assert len(esker.resume(path, generations=5).history) == 5


@pytest.mark.parametrize(
    "name", ["journal.jsonl", "status", "facts", "checkpoints", "lock", "best", "metrics.csv", "tensorboard", "wandb"]
)
def test_links_in_a_run_folder_are_not_written_through(name: str, tmp_path: Path) -> None:
    path, target = copy(tmp_path), tmp_path / "precious"
    if name == "checkpoints":
        (path / name).rename(target)
    else:
        target.write_text("precious")
        (path / name).unlink(missing_ok=True)
    os.symlink(target, path / name)
    with pytest.raises(UsageError, match="is a link"):
        esker.resume(path, generations=13)
    assert target.is_dir() or target.read_text() == "precious"


def test_init_from_takes_the_best_where_best_names_another_snapshot_and_reports_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy(tmp_path)
    right = int((path / "best").read_text())
    other = next(number for number in checkpoints.generations(path / "checkpoints") if number != right)
    (path / "best").write_text(f"{checkpoints.folder_name(other)}\n")
    config = ["--config", str(path / "config.toml"), "--init-from", str(path), "--generations", "1", "--no-quiet"]
    assert main(["train", "CartPole-v1", *config, "--run-dir", str(tmp_path / "new")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"are those of {path / 'checkpoints' / checkpoints.folder_name(right)}; best is damaged" in said
    assert center(tmp_path / "new", 0) == center(path, right)


def test_without_best_and_journal_the_newest_snapshot_names_the_best(tmp_path: Path) -> None:
    path = copy(tmp_path)
    newest = json.loads((path / "checkpoints" / "000012" / "state.json").read_text())
    right = newest.get("progress", newest)["best_generation"]
    for name in ("best", "journal.jsonl", "final.json"):
        (path / name).unlink(missing_ok=True)
    found, notices = pointers.wanted(RunFolder(path), "best", 12)
    assert (found, notices) == (right, [f"best is missing: by the newest snapshot it is generation {right}"])


def test_a_run_that_lost_a_file_is_still_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copy(tmp_path)
    for name in ("config.toml", "about.json"):
        whole = (path / name).read_bytes()
        (path / name).unlink()
        assert main(["runs", str(tmp_path)]) == 0
        assert "CartPole-v1" in capsys.readouterr().out
        assert main(["report", str(path), "-o", str(tmp_path / "x.html")]) == 0
        (path / name).write_bytes(whole)
