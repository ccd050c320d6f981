"""Hostile use: odd names, links, files that cannot be written, servers that are something else; always one clear line."""

from __future__ import annotations

import contextlib
import fcntl
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import worlds
from small_runs import QUICK, small_run

import esker
from esker.cli import main
from esker.cluster.connect import reach
from esker.errors import RunError, UsageError
from esker.logs.report.serve import open_server
from esker.runs.folder import RunFolder
from esker.worlds import environments


def copy(tmp_path: Path, name: str = "run") -> Path:
    return Path(shutil.copytree(small_run(), tmp_path / name))


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr().err
    assert said.startswith("esker: error: ")
    assert said.count("\n") == 1
    return said


def test_markup_in_a_path_is_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--generations", "1", "--population", "2", "--workers", "0", "--noise", "counter", "--preset", "none"]
    assert main(["train", "CartPole-v1", "--run-dir", str(tmp_path / "x[/]"), *flags]) == 0
    assert main(["runs", str(tmp_path)]) == 0
    assert main(["eval", str(tmp_path / "x[/]"), "--episodes", "1", "--workers", "0"]) == 0
    assert "x[/]" in capsys.readouterr().out


def test_a_report_replaces_a_link_and_shows_no_file_that_a_link_names(tmp_path: Path) -> None:
    run, secret = copy(tmp_path), tmp_path / "secret"
    secret.write_text("my secret words")
    (run / "videos").mkdir(exist_ok=True)
    (run / "videos" / "a.mp4").symlink_to(secret)
    (run / "report.html").symlink_to(secret)
    assert main(["report", str(run)]) == 0
    assert secret.read_text() == "my secret words"
    assert "bXkgc2VjcmV0IHdvcmRz" not in (run / "report.html").read_text()  # in base 64


@pytest.mark.parametrize("command", ["export", "render", "card"])
def test_folders_that_are_links_are_not_written_into(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, outside = copy(tmp_path), tmp_path / "outside"
    outside.mkdir()
    target = run / {"render": "videos"}.get(command, command)
    shutil.rmtree(target, ignore_errors=True)  # another test may have used the run that was copied
    target.symlink_to(outside)
    more = ["--episodes", "1", "--workers", "0"] if command == "card" else []
    assert main([command, str(run), *more]) == 2
    assert "is a link" in one_line(capsys)
    assert not list(outside.iterdir())


@pytest.mark.parametrize(
    ("command", "file"), [("export", "policy_state_dict.pt"), ("card", "README.md"), ("card", "curve.png")]
)
def test_files_that_are_links_are_not_written_through(
    command: str, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, outside = copy(tmp_path), tmp_path / "precious"
    outside.write_text("precious")
    shutil.rmtree(run / command, ignore_errors=True)
    (run / command).mkdir()
    (run / command / "README.md").touch()  # as after an earlier card
    (run / command / file).unlink(missing_ok=True)
    (run / command / file).symlink_to(outside)
    more = ["--episodes", "1", "--workers", "0"] if command == "card" else ["--format", "state-dict"]
    assert main([command, str(run), *more]) == 2
    assert "is a link" in one_line(capsys)
    assert outside.read_text() == "precious"


def test_one_row_that_is_no_row_stops_no_plot(tmp_path: Path) -> None:
    copy(tmp_path, "good")
    journal = copy(tmp_path, "bad") / "journal.jsonl"
    row = {"generation": 0, "env_steps": "x", "center_return": [1], "wall_time": None}
    journal.write_text(json.dumps(row) + "\n" + journal.read_text())
    assert main(["plot", str(tmp_path), "-o", str(tmp_path / "x.png")]) == 0
    assert (tmp_path / "x.png").stat().st_size > 1000


@pytest.mark.parametrize("command", ["export", "render", "plot", "report"])
def test_what_cannot_be_written_is_one_line(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    target = {"export": "x", "render": "x.mp4", "plot": "x.png", "report": "x.html"}[command]
    assert main([command, str(small_run()), "-o", str(tmp_path / "file" / target)]) in (1, 2)
    assert str(tmp_path / "file") in one_line(capsys)


def test_one_damaged_run_hides_no_other_in_a_served_report(tmp_path: Path) -> None:
    copy(tmp_path, "good")
    bad = copy(tmp_path, "bad")
    shutil.rmtree(bad / "checkpoints")
    (bad / "config.toml").write_text("population = = 3")
    with open_server([str(tmp_path)], 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/data.json"
        first = urllib.request.urlopen(address).read().decode()
        shutil.rmtree(tmp_path / "good")
        shutil.rmtree(bad)
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(address)
        server.shutdown()
    assert '"name":"good"' in first
    assert '"name":"bad"' not in first


@pytest.mark.parametrize("command", ["report", "plot"])
def test_a_damaged_run_that_is_named_hides_no_other(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = copy(tmp_path, "good"), copy(tmp_path, "bad")
    shutil.rmtree(bad / "checkpoints")
    (bad / "config.toml").write_text("population = = 3")
    target = tmp_path / {"report": "x.html", "plot": "x.png"}[command]
    assert main([command, str(good), str(bad), "-o", str(target)]) == 0
    assert "note: left out: " in capsys.readouterr().err
    assert target.exists()
    assert main([command, str(bad), "-o", str(target)]) == 2
    one_line(capsys)


def test_a_server_that_is_not_ray_is_refused_at_once() -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(UsageError, match="is not a Ray cluster"):
        reach(f"127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()


def test_a_constructor_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang() -> Any:
        time.sleep(60)

    monkeypatch.setattr(environments, "START", 0.1)
    with pytest.raises(RunError, match=r"making it took longer than 0.2 s"):
        esker.train(hang, run_dir=str(tmp_path / "run"), **QUICK, generations=1, step_timeout=0.1)


@pytest.mark.parametrize("error", [StopIteration, SystemExit])
def test_an_environment_that_raises_what_ends_loops_or_processes_is_named(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def step(self: object, action: object) -> Any:
        raise error

    monkeypatch.setattr("worlds.Corridor.step", step)
    assert main(["train", "worlds:Corridor", "--run-dir", str(tmp_path / "run"), "--workers", "0", "--quiet"]) == 1
    assert f"worlds:Corridor fails before training begins: {error.__name__}" in one_line(capsys)
    assert main(["check", "worlds:Corridor"]) == 2
    assert f"fails when it is stepped: {error.__name__}" in one_line(capsys)


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_an_environment_whose_close_raises_is_trained(error: type[BaseException], tmp_path: Path) -> None:
    class Stuck(worlds.Corridor):
        def close(self) -> None:
            raise error

    run = esker.train(Stuck, run_dir=str(tmp_path / "run"), **QUICK, generations=1)
    assert run.status == "finished: 1 generation done"


class Strange(worlds.Corridor):
    """A corridor that returns something else in one place, in training only: the first look resets with seeds 1 and 2."""

    def __init__(self, part: int, value: Any) -> None:
        super().__init__(length=3)
        self.part, self.value = part, value

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.bad = seed is not None and seed > 2
        observation, info = super().reset(seed=seed)
        return (self.value if self.bad and self.part == -1 else observation), info

    def step(self, action: Any) -> Any:
        result = super().step(action)
        return tuple(self.value if self.bad and at == self.part else one for at, one in enumerate(result))


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (-1, np.array(["a", "b", "c"]), "ValueError: could not convert string to float"),
        (0, np.array([1.0, np.inf, 0.0]), "an observation, or the square of one, is not finite"),
        (0, np.full(3, 1e200), "an observation, or the square of one, is not finite"),
        (1, 2j, "TypeError: the rewards add up to complex; expected one real number each"),
        (1, np.ones(2), "TypeError: the rewards add up to ndarray; expected one real number each"),
        (1, 1e200, r"the return of the episode is .*e\+200: a reward, an observation or an action was too large"),
        (2, np.array([True, False]), "ValueError: The truth value of an array"),
    ],
)
@pytest.mark.parametrize("on_error", ["stop", "worst"])
def test_what_an_environment_must_not_return_is_named_and_not_committed(
    part: int, value: Any, message: str, on_error: str, tmp_path: Path
) -> None:
    options = {**QUICK, "generations": 1, "center_episodes": 1, "on_error": on_error, "run_dir": str(tmp_path / "run")}
    with pytest.raises(RunError, match=message):
        esker.train(lambda: Strange(part, value), **options)
    assert RunFolder.open(tmp_path / "run").committed() == 0


def test_signs_of_rewards_that_are_numpy_numbers_are_counted(tmp_path: Path) -> None:
    run_dir = str(tmp_path / "run")
    run = esker.train("Pendulum-v1", shaping="sign", vectorizer="gymnasium", generations=1, run_dir=run_dir, **QUICK)
    (facts,) = run.folder.facts()
    assert (facts.fitness == -200).all()  # every step costs


def test_spaces_of_several_lines_and_empty_ones_are_refused_in_one(tmp_path: Path) -> None:
    grid, nothing = gym.spaces.MultiDiscrete([[2], [3]]), gym.spaces.Dict()
    for name, space, message in (("action_space", grid, "is for continuous"), ("observation_space", nothing, "are empty")):
        env = worlds.Corridor()
        setattr(env, name, space)
        with pytest.raises(UsageError, match=message) as caught:
            esker.train(env, run_dir=str(tmp_path / "run"), **QUICK, generations=1, action_mode="tanh")
        assert "\n" not in str(caught.value)


def test_observations_of_too_many_numbers_are_refused_before_time_is_appended(tmp_path: Path) -> None:
    env = worlds.Corridor()
    env.observation_space = gym.spaces.Discrete(10**9)
    options = {"generations": 1, "time_aware": True, "max_episode_steps": 5, "run_dir": str(tmp_path / "run")}
    with pytest.raises(UsageError, match="are 1,000,000,000 numbers"):
        esker.train(env, **options, **QUICK)


def test_a_policy_whose_slots_exceed_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "esker.system.room.machine_memory", lambda: 20 * 50
    )  # of 50 parameters' five rows, six and more needed
    with pytest.raises(UsageError, match="the policy for these spaces would have 50 parameters"):
        esker.train(worlds.Corridor(), run_dir=str(tmp_path / "run"), **{**QUICK, "hidden": (8,)}, generations=1)


def test_a_folder_in_which_another_process_begins_a_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.mkdir()
    with (path / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="in use by another process"):
            esker.train("CartPole-v1", run_dir=str(path), **QUICK, generations=1)
    assert not (path / "config.toml").exists()


@pytest.mark.parametrize("name", ["config.toml", "about.json", "journal.jsonl", "facts", "status", "best"])
def test_pipes_in_a_run_folder_are_not_waited_for(name: str, tmp_path: Path) -> None:
    run = copy(tmp_path)
    (run / name).unlink()
    os.mkfifo(run / name)
    for command in (["eval", str(run), "--episodes", "1", "--workers", "0"], ["runs", str(tmp_path)], ["plot", str(run)]):
        assert main([*command, *(["-o", str(tmp_path / "x.png")] if command[0] == "plot" else [])]) in (0, 1, 2)


def test_a_stopped_worker_ends_with_its_parent(tmp_path: Path) -> None:
    """It cannot see the end of the pipe to its parent, but the kernel ends it."""
    mark = f"ESKER_TEST_MARK={tmp_path}"
    code = f"import esker; esker.train('worlds:Corridor', run_dir={str(tmp_path / 'run')!r}, workers=1, generations=10**6, "
    code += "population=2, noise='counter', quiet=True, preset=None)"
    paths = os.pathsep.join([str(Path(esker.__file__).parents[1]), str(Path(__file__).parent)])
    name, _, value = mark.partition("=")
    parent = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": paths, name: value})
    try:
        while not (tmp_path / "run" / "journal.jsonl").exists():
            assert parent.poll() is None
            time.sleep(0.1)
        (worker,) = [pid for pid in _marked(mark) if pid != parent.pid]
        os.kill(worker, signal.SIGSTOP)
    finally:
        parent.kill()
        parent.wait()
    until = time.monotonic() + 20
    while _marked(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _marked(mark)


def _marked(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{mark}\0".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found
