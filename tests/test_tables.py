"""Tables and names in commands: nothing is cut, pipes get one line a row, `latest` is the newest run."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from small_runs import small_run

import esker
from esker.cli import main
from esker.logs.seeds import print_seeds
from esker.logs.tables import lines, print_table

HEADINGS = ("run", "environment", "steps", "status")
ROWS = [
    ("runs/HalfCheetah-v5/es-s0-20260301-120000", "HalfCheetah-v5", "10,000,000", "finished"),
    ("runs/CartPole-v1/es-s12-20260301-120000-2", "CartPole-v1", "5", "running"),
]


def printed(width: int, terminal: bool = True, **options: tuple[str, ...]) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=terminal, color_system=None)
    print_table(console, HEADINGS, ROWS, right=("steps",), **options)  # type: ignore[arg-type]
    text = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())  # type: ignore[attr-defined]
    return [line.rstrip() for line in text.splitlines()]


def test_pipe_gets_one_aligned_line_a_row() -> None:
    assert printed(20, terminal=False) == lines(HEADINGS, ROWS, ("steps",))
    assert lines(HEADINGS, ROWS, ("steps",))[2].split() == list(ROWS[1])
    assert len({line.index(row[1], 20) for line, row in zip(lines(HEADINGS, ROWS)[1:], ROWS, strict=True)}) == 1


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_name_is_cut_at_any_width(width: int) -> None:
    text = " ".join(" ".join(printed(width)).split())
    for row in ROWS:
        assert all(value in text for value in row)
    assert "…" not in text


def test_terminal_that_is_wide_enough_has_columns_and_a_narrow_one_records() -> None:
    assert printed(120)[0].split() == list(HEADINGS)
    assert printed(60)[0] == ROWS[0][0]
    assert printed(60)[1].split() == ["environment", "HalfCheetah-v5", "steps", "10,000,000"]
    assert printed(60)[2].split() == ["status", "finished"]


def test_prose_wraps_inside_its_column() -> None:
    console = Console(width=50, file=io.StringIO(), force_terminal=True, color_system=None)
    print_table(
        console,
        ("name", "about"),
        [("cartpole/es", "solves CartPole in a minute on two cores, five of five seeds")],
        prose=("about",),
    )
    found = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert (len(found), max(map(len, found)) <= 50) == (3, True)


def test_latest_is_the_newest_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seed, started in (("old", 0, 1000.0), ("new", 1, 2000.0)):
        run = tmp_path / "runs" / "CartPole-v1" / name
        shutil.copytree(small_run(seed=seed), run)
        about = json.loads((run / "about.json").read_text()) | {"started": started}
        (run / "about.json").write_text(json.dumps(about))
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "latest", "--episodes", "1", "--workers", "0"]) == 0
    assert capsys.readouterr().out.startswith("runs/CartPole-v1/new:")
    assert main(["plot", "latest", "-o", "c.svg"]) == 0


def test_latest_without_runs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["eval", "latest"]) == 2
    assert "newest run under runs/, and there is none" in capsys.readouterr().err


def test_paths_of_runs_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(small_run(), tmp_path / "runs" / "CartPole-v1" / "s0")
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 0
    path = capsys.readouterr().out.splitlines()[1].split()[0]
    assert (path, os.path.isdir(path)) == ("runs/CartPole-v1/s0", True)


def test_presets_of_one_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets", "CartPole-v1", "--json"]) == 0
    assert {preset["env"] for preset in json.loads(capsys.readouterr().out)} == {"CartPole-v1"}
    assert main(["presets", "halfcheetah"]) == 0
    assert "`esker train HalfCheetah-v5` takes halfcheetah/" in capsys.readouterr().out
    assert main(["presets", "HalfCheeta-v5"]) == 2
    assert "did you mean 'HalfCheetah-v5'" in capsys.readouterr().err


def test_seeds_are_summarised_as_one_result() -> None:
    console = Console(width=100, file=io.StringIO(), color_system=None)
    runs = [esker.Run(small_run(seed=seed)) for seed in range(2)]
    print_seeds(console, runs)
    best = sorted(run.best_return for run in runs if run.best_return is not None)
    last = console.file.getvalue().splitlines()[-1]  # type: ignore[attr-defined]
    assert last.startswith(f"2 seeds: interquartile mean {sum(best) / 2:,.1f} [")
    assert last.endswith(f"worst {best[0]:,.1f}")
