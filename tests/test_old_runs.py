"""Run folders and results of an earlier version: its folders load, evaluate and resume, and equal seeds give its bits.

Bits depend on the processor and on the versions of NumPy and torch. Where those differ from the ones in `golden.json`,
old folders must still load, evaluate and resume, and a resumed run must still equal an uninterrupted one.
"""

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import old_runs
import pytest
from old_runs import CASES, DATA, END, KEPT, STOP

import esker

GOLDEN = json.loads((DATA / "golden.json").read_text())
RUNS = GOLDEN["runs"]
SAME = old_runs.machine() == GOLDEN["machine"]
POLICIES = [name for name in KEPT if name != "evolution"]
WITH_FACTS = [name for name in POLICIES if (DATA / "runs" / name / "facts").exists()]
same_machine = pytest.mark.skipif(not SAME, reason="this machine computes other bits than the one of golden.json")


@pytest.fixture
def old(tmp_path):
    """A copy of an old run folder."""
    return lambda name: shutil.copytree(DATA / "runs" / name, tmp_path / name)


@cache
def uninterrupted(name, holder):
    """What a run from nothing to its end gives."""
    return old_runs.result(old_runs.start(name, holder / name))


@pytest.fixture(scope="module")
def holder(tmp_path_factory):
    return tmp_path_factory.mktemp("uninterrupted")


def command(*arguments):
    """Run the command line with the package that the tests import."""
    paths = os.pathsep.join([str(Path(esker.__file__).parents[1]), str(old_runs.HERE)])
    done = subprocess.run(
        [sys.executable, "-m", "esker", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=old_runs.HERE,
        env=os.environ | {"PYTHONPATH": paths},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_an_old_folder_of_every_algorithm():
    kept = {options.get("algo", "es") for options in KEPT.values()}
    assert kept == {"es", "td3", "cem-rl", "p-cem-rl", "acem-rl", "one-plus-one", "aes-rl", "function"}
    assert {path.name for path in (DATA / "runs").iterdir()} == set(KEPT)


@same_machine
@pytest.mark.parametrize("name", CASES)
def test_a_run_from_nothing_ends_with_the_recorded_bits(name, holder):
    assert uninterrupted(name, holder) == RUNS[name]["end"]


@pytest.mark.parametrize("name", KEPT)
def test_a_stopped_run_has_the_files_of_an_old_one_and_resumes_to_the_same_bits(name, tmp_path, holder):
    run, before = old_runs.start(name, tmp_path / "run", STOP), DATA / "runs" / name
    if SAME:  # the best is chosen by another rule now, so another generation's snapshot may be kept for it
        best = before / "checkpoints" / (before / "best").read_text().strip()
        files = {path.relative_to(before) for path in before.rglob("*") if path.is_file() and path.parent != best}
        assert files <= {path.relative_to(run) for path in run.rglob("*") if path.is_file()}
    then, now = old_runs.tensors(before), old_runs.tensors(run)
    assert {(n, a.dtype, a.shape) for n, a in then.items()} <= {(n, a.dtype, a.shape) for n, a in now.items()}
    if SAME:
        assert {n: a.tobytes() for n, a in then.items()} == {n: now[n].tobytes() for n in then}
    assert set(old_runs.rows(before)[0]) <= set(old_runs.rows(run)[0])
    assert old_runs.result(old_runs.resume(name, run)) == uninterrupted(name, holder)


@pytest.mark.parametrize("name", POLICIES)
def test_an_old_run_loads_and_evaluates(name, old):
    run = old(name)
    assert old_runs.digest(esker.load(run, "latest").parameters) == RUNS[name]["stopped"]["center"]
    assert old_runs.digest(esker.load(run, "best").parameters) == RUNS[name]["best"]
    evaluation, notices = esker.evaluate(run, episodes=2, checkpoint="latest", workers=0, trust=["worlds"])
    assert (len(evaluation.returns), evaluation.checkpoint, notices) == (2, STOP, [])
    assert np.isfinite(evaluation.returns).all()
    if SAME:
        assert evaluation.returns == RUNS[name]["returns"]


@pytest.mark.parametrize("name", KEPT)
def test_an_old_run_resumes_to_the_recorded_bits(name, old):
    run = old(name)
    journal = old_runs.rows(run)
    old_runs.resume(name, run, inexact=not SAME)
    assert old_runs.rows(run)[:STOP] == journal
    assert [row["generation"] for row in old_runs.rows(run)] == list(range(END))
    if SAME:
        assert old_runs.result(run) == RUNS[name]["end"]


@same_machine
@pytest.mark.parametrize("name", WITH_FACTS)
def test_an_old_run_without_its_last_snapshot_is_recomputed_from_its_facts(name, old):
    run = old(name)
    shutil.rmtree(run / "checkpoints" / f"{STOP:06}")
    assert old_runs.digest(esker.load(run, STOP).parameters) == RUNS[name]["stopped"]["center"]
    old_runs.resume(name, run)
    assert old_runs.result(run) == RUNS[name]["end"]


def test_the_command_line_evaluates_an_old_run(old):
    arguments = ("--episodes", 2, "--checkpoint", "latest", "--workers", 0, "--json")
    found = json.loads(command("eval", old("es-table"), *arguments))
    assert set(found) == {"episodes", "mean", "std", "min", "max", "median", "length_mean", "checkpoint"}
    assert (found["episodes"], found["checkpoint"]) == (2, STOP)
    if SAME:
        assert [found["min"], found["max"]] == sorted(RUNS["es-table"]["returns"])


def test_the_command_line_resumes_an_old_run(old):
    run = old("aes-rl")
    command("resume", run, *([] if SAME else ["--inexact"]))
    assert len(old_runs.rows(run)) == END
    if SAME:
        assert old_runs.result(run) == RUNS["aes-rl"]["end"]


OF_ES = {"population": 4, "center_episodes": 2, "workers": 0, "preset": None, "quiet": True, "noise": "counter"}
OF_TD3 = {"algo": "td3", "generation_steps": 30, "batch_size": 8, "initial_steps": 30, "hidden": (4,), "workers": 0}
RAM = {"max_episode_steps": 20, "env_kwargs": {"obs_type": "ram"}, "screen_size": 21, "hidden": (4,)}
REFUSED_NOW = {
    "with options of its own": ("CartPole-v1", OF_ES | {"algo": "es", "strategy": "pgpe"}),
    "leave none of them to go on": ("CartPole-v1", OF_ES | {"starts": 2, "start_steps": 1000, "steps": 1500}),
    "asks for its memory": ("ALE/Pong-v5", OF_ES | RAM),
    "are whole numbers": ("worlds:Digits", OF_ES | {"network": "linear"}),
    "are whole numbers; expected a Box of floats": ("worlds:Digits", OF_TD3),
}


@pytest.mark.parametrize("why", REFUSED_NOW)
def test_what_only_earlier_versions_began_still_loads_evaluates_and_resumes(why, tmp_path, monkeypatch):
    env, options = REFUSED_NOW[why]
    if env.startswith("ALE"):
        pytest.importorskip("ale_py")
    options = options | {"preset": None, "quiet": True, "generations": 2}
    with pytest.raises(esker.UsageError, match=why):
        esker.train(env, **options, run_dir=str(tmp_path / "refused"))
    with monkeypatch.context() as earlier:
        for kind in ("es:ESConfig", "es:SynchronousConfig"):
            earlier.setattr(f"esker.algorithms.{kind.replace(':', '.')}.check_new", lambda self: None)
        earlier.setattr("esker.runs.request._refuse_strategy", lambda *layers: None)
        earlier.setattr("esker.algorithms.es.refuse_whole_numbers", lambda space: None)
        earlier.setattr("esker.algorithms.hybrid_setup.refuse_whole_numbers", lambda space: None)
        run = esker.train(env, **options, run_dir=str(tmp_path / "run"))
    assert np.isfinite(esker.load(run.path).parameters).all()
    assert len(esker.evaluate(run.path, episodes=2, workers=0)[0].returns) == 2
    assert len(esker.resume(run.path, generations=3, **({"steps": 50_000} if "steps" in options else {})).history) == 3
