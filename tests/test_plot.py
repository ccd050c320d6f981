"""`esker plot` and what it shares with the report: finding, grouping and aggregating runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_runs import small_run

from esker.cli import main
from esker.runs.reading import aggregate, differences, find_runs, group_runs, read_runs


def test_aggregate_covers_what_all_seeds_reached() -> None:
    first = np.array([0.0, 10.0, 20.0]), np.array([0.0, 10.0, 20.0])
    second = np.array([5.0, 15.0]), np.array([7.0, 17.0])
    band = aggregate([first, second])
    assert band is not None
    np.testing.assert_allclose(band.x, [5, 10, 15])
    np.testing.assert_allclose(band.mean, [6, 11, 16])
    np.testing.assert_allclose(band.std, [1, 1, 1])
    np.testing.assert_allclose(band.low, [5, 10, 15])
    np.testing.assert_allclose(band.high, [7, 12, 17])


def test_aggregate_of_curves_that_never_meet_is_none() -> None:
    assert aggregate([(np.array([0.0, 1.0]), np.zeros(2)), (np.array([2.0, 3.0]), np.zeros(2))]) is None
    assert aggregate([(np.zeros(0), np.zeros(0))]) is None


def test_seeds_of_one_configuration_are_one_group_named_by_what_differs() -> None:
    runs = read_runs([small_run(seed=0), small_run(seed=1), small_run(lr=0.2)])
    groups = group_runs(runs)
    assert [(group.label, [run.seed for run in group.runs]) for group in groups] == [
        ("es lr=0.05", [0, 1]),
        ("es lr=0.2", [0]),
    ]
    assert differences(runs) == {"seed": [0, 1, 0], "lr": [0.05, 0.05, 0.2]}


def test_more_workers_or_generations_are_the_same_configuration() -> None:
    groups = group_runs(read_runs([small_run(), small_run(generations=2)]))
    assert [len(group.runs) for group in groups] == [2]


def test_folder_stands_for_the_runs_inside_it() -> None:
    small_run(seed=0), small_run(seed=1)
    assert find_runs([small_run().parent]) == [small_run(seed=0), small_run(seed=1)]


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_curve_is_drawn(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "made" / f"curve.{kind}"
    runs = [str(small_run(seed=0)), str(small_run(seed=1)), str(small_run(lr=0.2))]
    assert main(["plot", *runs, "-o", str(target)]) == 0
    if kind == "svg":
        text = target.read_text()
        assert all(part in text for part in ("es lr=0.05 (2 seeds)", "es lr=0.2", "environment steps", "CartPole-v1"))
    elif kind == "png":
        colors = {color for _, color in Image.open(target).convert("RGB").getcolors(1 << 20) or []}
        assert {(0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)} <= colors  # both lines are there
    else:
        assert target.read_bytes().startswith(b"%PDF")


def test_equal_runs_give_an_equal_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        main(["plot", str(small_run()), "-o", str(tmp_path / name)])
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_environments_get_a_panel_each(tmp_path: Path) -> None:
    main(["plot", str(small_run()), str(small_run("Acrobot-v1", generations=1)), "-o", str(tmp_path / "c.svg")])
    text = (tmp_path / "c.svg").read_text()
    assert ("CartPole-v1" in text, "Acrobot-v1" in text) == (True, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "curve.bmp"], "expected a file that ends in .png, .svg, .pdf"),
        (["--y", "retrun_mean"], "unknown column 'retrun_mean'; did you mean 'return_mean'"),
        (["--x", "days"], "invalid choice: 'days'"),
    ],
)
def test_wrong_request_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(small_run()), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_folder_without_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", str(tmp_path)]) == 2
    assert "is not a run folder and holds none" in capsys.readouterr().err
