"""`benchmarks/evidence.py`: a whole table from one command, resumed, and no run counted twice."""

import contextlib
import importlib.util
import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from esker.cli import main
from esker.errors import UsageError

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SMALL = ["--", "--generations", "3", "--population", "4", "--center-episodes", "2", "--hidden", "4"]


def script(name, monkeypatch):
    """A script of benchmarks/ as a module."""
    specification = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, name, module)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def evidence(monkeypatch):
    """The script, running the command line inside this process and noting every command."""
    module = script("evidence", monkeypatch)
    module.commands = []

    def esker(*arguments):
        module.commands.append(arguments[0])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert main(list(arguments)) == 0
        return out.getvalue()

    monkeypatch.setattr(module, "esker", esker)
    return module


def flags(tmp_path, *more):
    folders = ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    return ["cartpole/es", "--workers", "0", "--episodes", "3", *folders, *more, *SMALL]


def stored(tmp_path):
    return json.loads((tmp_path / "results" / "cartpole-es.json").read_text())


def test_one_command_makes_the_table_and_the_next_one_only_what_is_missing(evidence, tmp_path, capsys):
    assert evidence.main(flags(tmp_path, "--seeds", "0,1")) == 0
    first = stored(tmp_path)
    assert evidence.commands == ["train", "eval"] * 2
    assert [(seed["seed"], seed["generations"]) for seed in first["seeds"]] == [(0, 3), (1, 3)]
    assert "cartpole/es: median" in capsys.readouterr().out
    evidence.commands.clear()
    assert evidence.main(flags(tmp_path, "--seeds", "0..2")) == 0
    assert evidence.commands == ["resume", "resume", "train", "eval"]
    assert stored(tmp_path)["seeds"][:2] == first["seeds"]
    assert len({seed["run"] for seed in stored(tmp_path)["seeds"]}) == 3


def test_seeds_and_copies_of_a_run_count_once(evidence, tmp_path):
    evidence.main(flags(tmp_path, "--seeds", "0,0"))
    shutil.copytree(tmp_path / "runs" / "cartpole-es" / "s0", tmp_path / "runs" / "cartpole-es" / "s7")
    evidence.main(flags(tmp_path, "--seeds", "0,7", "--collect"))
    assert [seed["seed"] for seed in stored(tmp_path)["seeds"]] == [0]


def test_collecting_trains_nothing_and_takes_runs_as_far_as_they_are(evidence, tmp_path):
    run = tmp_path / "runs" / "cartpole-es" / "s0"
    command = ["train", "CartPole-v1", "--preset", "cartpole/es", "--run-dir", str(run), "--workers", "0", "--quiet"]
    assert main([*command, *SMALL[1:], "--generations", "1"]) == 0
    assert evidence.main(flags(tmp_path, "--seeds", "0..3", "--collect")) == 0
    assert evidence.commands == ["eval"]
    assert [seed["generations"] for seed in stored(tmp_path)["seeds"]] == [1]
    assert main(["resume", str(run), "--generations", "2", "--workers", "0", "--quiet"]) == 0
    evidence.main(flags(tmp_path, "--seeds", "0", "--collect"))
    assert [seed["generations"] for seed in stored(tmp_path)["seeds"]] == [2]


def test_seeds_of_another_command_are_not_mixed_in(evidence, tmp_path):
    evidence.main(flags(tmp_path, "--seeds", "0"))
    with pytest.raises(UsageError, match="another command"):
        evidence.main([*flags(tmp_path, "--seeds", "1"), "--sigma", "0.3"])
    assert [seed["seed"] for seed in stored(tmp_path)["seeds"]] == [0]


def test_a_chosen_checkpoint_is_a_share_of_the_highest_also_where_returns_are_negative(monkeypatch):
    best = script("best", monkeypatch)
    assert best.ratio({"chosen": 10, "means": {"10": 97.0, "20": 100.0}}) == pytest.approx(0.97)
    assert best.ratio({"chosen": 10, "means": {"0": -500.0, "10": -90.0, "20": -80.0}}) == pytest.approx(410 / 420)


def test_defaults_score_between_untrained_and_the_best_where_all_have_finished(monkeypatch):
    defaults = script("defaults", monkeypatch)
    one, two, three = "one", "two", "three"
    monkeypatch.setattr(defaults, "CANDIDATES", {one: [], two: [], three: []})
    whole = {one: [[0.0, 10.0]], two: [[0.0, 5.0]], three: [[0.0, -30.0]]}
    assert defaults.scores({"A": whole, "B": {one: [[0.0, 1.0]]}}) == {one: 1.0, two: 0.5, three: -1.0}
