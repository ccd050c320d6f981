"""`esker plot` and what it shares with the report: finding, grouping and aggregating runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from small_runs import small_run

import esker
from esker.cli import main
from esker.logs.plot import grid_of, short_number
from esker.runs.curves import Curve, aggregate, smooth
from esker.runs.folder import RunFolder
from esker.runs.groups import differences, group_runs
from esker.runs.reading import RunData, find_runs, read_runs
from esker.runs.request import configure
from esker.runs.statistics import bootstrap_interval, interquartile_mean, mean, summarize_seeds


def curve(x: list[float], y: list[float], ended: bool = False) -> Curve:
    return Curve(np.array(x), np.array(y), ended)


def test_aggregate_covers_what_all_seeds_reached() -> None:
    band = aggregate([curve([0, 10, 20], [0, 10, 20]), curve([5, 15], [7, 17])], "mean", "range")
    assert band is not None
    np.testing.assert_allclose(band.x, [5, 10, 15])
    np.testing.assert_allclose(band.average, [6, 11, 16])
    np.testing.assert_allclose(band.low, [5, 10, 15])
    np.testing.assert_allclose(band.high, [7, 12, 17])
    assert band.cut  # 15 of 20: a reader must know


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (400, "400"), (-1250, "−1,250"), (2.5e6, "2.5M"), (4e5, "400k"), (-12500, "−12.5k"), (0.1 + 0.2, "0.3")],
)
def test_marks_are_written_as_people_say_them(value: float, text: str) -> None:
    assert short_number(value) == text


def test_configurations_that_are_presets_bear_their_names() -> None:
    chosen = {"preset": "hopper/ars"}, {"preset": "halfcheetah/ars"}, {"preset": "halfcheetah/es"}
    envs = ("Hopper-v5", "HalfCheetah-v5", "HalfCheetah-v5", "HalfCheetah-v5")
    asked = [configure(env, {}, **how) for env, how in zip(envs, (*chosen, {"preset": None}), strict=True)]
    runs = [RunData(RunFolder(Path("none")), "run", vars(one.config), {}, "finished", []) for one in asked]
    labels = [group.label for group in group_runs(runs)]
    assert labels[:3] == ["es", "halfcheetah/ars", "halfcheetah/es"]  # where there is nothing to tell apart, the algorithm
    assert labels[3].startswith("es ")


def test_aggregate_of_curves_that_never_meet_is_none() -> None:
    assert aggregate([curve([0, 1], [0, 0]), curve([2, 3], [0, 0])]) is None
    assert aggregate([curve([], [])]) is None


def test_seed_that_reached_its_goal_is_carried_to_the_end_of_the_others() -> None:
    band = aggregate([curve([0, 10], [0, 500], ended=True), curve([0, 30], [100, 400])], "mean", "range")
    assert band is not None
    np.testing.assert_allclose(band.x, [0, 10, 30])
    np.testing.assert_allclose(band.average, [50, 350, 450])
    assert band.carried == 1


def test_mean_of_seeds_that_all_reached_their_goal_ends_at_the_longest() -> None:
    band = aggregate([curve([0, 10], [0, 500], ended=True), curve([0, 30], [100, 500], ended=True)])
    assert band is not None
    assert (band.x[-1], band.average[-1], band.carried, band.cut) == (30, 500, 1, False)


def test_deviation_stays_within_what_the_seeds_did() -> None:
    curves = [curve([0, 1], [500, 500]) for _ in range(4)] + [curve([0, 1], [0, 0])]
    band = aggregate(curves, "mean", "std")
    assert band is not None
    np.testing.assert_allclose(band.average, [400, 400])
    np.testing.assert_allclose(band.high, [500, 500])  # mean + deviation would be 600
    np.testing.assert_allclose(band.low, [200, 200])


def test_interquartile_mean_cuts_a_quarter_from_each_end() -> None:
    for count in range(1, 13):
        values = np.sort(np.random.default_rng(count).normal(size=count))
        cut = int(0.25 * count)  # scipy.stats.trim_mean(values, 0.25), which rliable uses
        assert interquartile_mean(values) == pytest.approx(values[cut : count - cut].mean())


def test_bootstrap_interval_resamples_within_each_stratum() -> None:
    low, high = bootstrap_interval([np.zeros(4), np.full(4, 10.0)], mean)
    assert (float(low), float(high)) == (5.0, 5.0)  # runs are never drawn from another task


def test_bootstrap_interval_of_a_mean_is_the_normal_one() -> None:
    values = np.random.default_rng(0).normal(size=400)
    low, high = bootstrap_interval([values], mean)
    expected = 1.96 * values.std() / 20
    assert (high - low) / 2 == pytest.approx(expected, rel=0.08)
    assert (high + low) / 2 == pytest.approx(values.mean(), abs=0.02)


def test_smoothing_is_an_unbiased_exponential_mean() -> None:
    smoothed = smooth(curve([0, 1, 2], [4, 8, 0]), 0.5)
    np.testing.assert_allclose(smoothed.y, [4, (0.25 * 4 + 0.5 * 8) / 0.75, (0.125 * 4 + 0.25 * 8) / 0.875])


def copied(run: Path, target: Path, rows: int | None = None, status: str | None = None, **changes: float) -> Path:
    """A copy of a run, with other values in its journal or another end."""
    shutil.copytree(run, target)
    kept = [json.loads(line) | changes for line in (run / "journal.jsonl").read_text().splitlines()[:rows]]
    (target / "journal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    if status is not None:
        (target / "status").write_text(status + "\n")
    return target


def test_three_runs_of_one_seed_are_one_seed(tmp_path: Path) -> None:
    copied(small_run(), tmp_path / "again"), copied(small_run(), tmp_path / "cut", rows=2)
    (group,) = group_runs(read_runs([small_run(), tmp_path]))
    assert ([run.name for run in group.distinct], group.count_text()) == (["s0"], "1 seed")
    assert group.notes() == ["CartPole-v1, es: 2 of 3 runs repeat seed 0; each seed counts once"]


def test_equal_seeds_with_other_results_are_runs_of_one_seed(tmp_path: Path) -> None:
    copied(small_run(), tmp_path / "other", center_return=1.0)
    (group,) = group_runs(read_runs([small_run(), tmp_path]))
    assert group.count_text() == "2 runs of 1 seed"
    assert group.notes() == ["CartPole-v1, es: equal seeds gave different results, so these are 2 runs of 1 seed"]


def test_name_of_a_configuration_has_no_more_options_than_it_takes() -> None:
    runs = [small_run(), small_run(lr=0.2, sigma=0.2, center_episodes=1)]
    labels = [group.label for group in group_runs(read_runs(runs))]
    assert labels == ["es sigma=0.1 lr=0.05 …", "es sigma=0.2 lr=0.2 …"]


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


def test_a_centre_stands_after_the_steps_it_was_trained_on(tmp_path: Path) -> None:
    (run,) = read_runs([small_run()])
    rows, final = run.rows, json.loads((small_run() / "final.json").read_text())
    drawn = run.curve("steps", "center_return")
    assert drawn.x.tolist() == [0, *(row["env_steps"] for row in rows)]
    assert drawn.y.tolist() == [*(row["center_return"] for row in rows), final["center_return"]]
    assert run.curve("generations", "center_return").x.tolist() == list(range(len(rows) + 1))
    assert run.curve("steps", "return_mean").x.tolist() == [row["env_steps"] for row in rows]
    (cut,) = read_runs([copied(small_run(), tmp_path / "cut", rows=2)])  # whose end was not evaluated
    assert cut.curve("steps", "center_return").x.tolist() == [0, rows[0]["env_steps"]]


def test_run_without_a_generation_gets_no_panel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copied(small_run("Acrobot-v1", generations=1), tmp_path / "none", rows=0)
    assert main(["plot", str(tmp_path), str(small_run()), "-o", str(tmp_path / "c.svg")]) == 0
    assert "Acrobot-v1" not in (tmp_path / "c.svg").read_text()
    assert "Acrobot-v1, es: no generation to draw yet" in capsys.readouterr().err


def test_many_environments_stand_in_a_grid() -> None:
    assert [grid_of(count) for count in (1, 3, 4, 12, 17)] == [(1, 1), (1, 3), (2, 2), (3, 4), (5, 4)]


def test_single_generation_is_drawn_as_a_point(tmp_path: Path) -> None:
    run = copied(small_run(), tmp_path / "one", rows=1)
    main(["plot", str(run), "-o", str(tmp_path / "c.png")])
    colors = {
        color
        for _, color in Image.open(tmp_path / "c.png").convert("RGB").crop((150, 100, 900, 580)).getcolors(1 << 20) or []
    }
    assert (0x00, 0x72, 0xB2) in colors


def test_seeds_that_share_no_stretch_are_drawn_each(tmp_path: Path) -> None:
    small = {"population": 2, "generations": 1, "center_episodes": 1, "noise": "counter", "workers": 0, "quiet": True}
    for seed in (0, 1):
        esker.train("CartPole-v1", seed=seed, run_dir=str(tmp_path / "runs" / str(seed)), **small)
    journal = tmp_path / "runs" / "1" / "journal.jsonl"
    row = json.loads(journal.read_text())
    journal.write_text(json.dumps(row | {"env_steps": 10**6}) + "\n")  # its first reading comes after the other's last
    assert main(["plot", str(tmp_path / "runs"), "--y", "return_mean", "-o", str(tmp_path / "figure.svg")]) == 0
    assert "each seed: they share no stretch" in (tmp_path / "figure.svg").read_text()


def test_figure_names_its_lines_its_band_and_who_was_carried_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    goal = "finished: goal reached: centre return ≥ 1"
    for number in range(5):
        run = small_run(seed=number)
        copied(run, tmp_path / f"s{number}", rows=2 + number % 2, status=goal, center_return=float(number))
    target = tmp_path / "c.svg"
    flags = ["--label", "ours", "--reference", "3=published", "--each-seed", "--x", "episodes", "--size", "7x4"]
    assert main(["plot", str(tmp_path), *flags, "-o", str(target)]) == 0
    text = target.read_text()
    assert all(part in text for part in ("ours (5 seeds)", "published", "interquartile mean", "bootstrap", ">episodes<"))
    assert 'width="504pt" height="288pt"' in text
    assert "3 seeds stopped at their goal and are carried on" in capsys.readouterr().err


def test_evolution_run_hides_no_other_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(small_run(), tmp_path / "policy")
    options = {"workers": 0, "noise": "counter", "quiet": True, "run_dir": str(tmp_path / "function")}
    esker.Evolution(torch.zeros(3), lambda model: -float((model**2).sum()), **options).run(2)
    assert main(["plot", str(tmp_path), "-o", str(tmp_path / "c.svg")]) == 0
    text = (tmp_path / "c.svg").read_text()
    assert ("reward function" in text, "CartPole-v1" in text) == (True, True)


def test_damaged_run_inside_a_folder_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("good", "bad"):
        shutil.copytree(small_run(), tmp_path / name)
    (tmp_path / "bad" / "config.toml").write_text("population = = 3")
    shutil.rmtree(tmp_path / "bad" / "checkpoints")  # each holds a copy of the configuration
    assert main(["plot", str(tmp_path), "-o", str(tmp_path / "c.svg")]) == 0
    assert "left out: " in capsys.readouterr().err
    assert main(["plot", str(tmp_path / "bad"), "-o", str(tmp_path / "c.svg")]) == 2


def test_summary_of_seeds_has_median_worst_and_an_interval_around_the_interquartile_mean() -> None:
    summary = summarize_seeds([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (summary.seeds, summary.iqm, summary.median, summary.worst, summary.best) == (5, 3.0, 3.0, 1.0, 100.0)
    assert 1.0 <= summary.low < 3.0 < summary.high <= 100.0
    assert summary == summarize_seeds([1.0, 2.0, 3.0, 4.0, 100.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "6"], "size is '6'; expected inches"),
        (["--smooth", "1"], "smooth is 1; expected 0"),
        (["--reference", "high"], "reference is 'high'; expected a number"),
        (["--label", "a", "--label", "b"], "2 labels for 1 configurations ('es'); give --label once for each"),
        (["--x", "training"], "no journal has training_steps; use --x steps"),
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
