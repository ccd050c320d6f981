"""What must not be printed: MuJoCo's warnings and log file, a second "interrupted"; and who `cluster stop` ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from esker.cli import main
from esker.cluster.node_stop import RayProcess, ray_processes

ROOT = str(Path(__file__).parent.parent)


def python(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": ROOT}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )


def test_mujoco_leaves_no_log_and_warns_of_nothing_one_can_act_on(tmp_path: Path) -> None:
    program = """
from esker.worlds.environments import resolve
for _ in range(3): resolve("HalfCheetah-v5")[0].make()
"""
    done = python(program, tmp_path)
    assert (done.stdout, done.stderr, list(tmp_path.iterdir())) == ("", "", [])


def test_unstable_simulation_is_warned_of_once(tmp_path: Path) -> None:
    program = """
from esker.worlds.environments import resolve
import mujoco
env = resolve("HalfCheetah-v5")[0].make().unwrapped
for _ in range(3):
    data = mujoco.MjData(env.model)
    data.qvel[:] = 1e12
    mujoco.mj_step(env.model, data)
"""
    done = python(program, tmp_path)
    assert done.stderr.count("note: MuJoCo: Nan, Inf or huge value in QVEL") == 1
    assert list(tmp_path.iterdir()) == []


def test_interrupted_is_reported_once(tmp_path: Path) -> None:
    flags = ["--preset", "none", "--population", "6", "--hidden", "8", "--workers", "0", "--noise", "counter"]
    command = [sys.executable, "-m", "esker", "train", "CartPole-v1", *flags, "--generations", "1000000", "--run-dir", "run"]
    environment = os.environ | {"PYTHONPATH": ROOT}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "run" / "journal.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=60)[0]
    assert (process.returncode, output.count("interrupted")) == (130, 1)


def test_processes_of_a_node_are_told_by_their_cluster() -> None:
    listing = [
        " 10 /x/gcs_server --log_dir=/tmp --gcs_server_port=6379 --node-ip-address=10.0.0.1",
        " 11 /x/raylet --gcs-address=10.0.0.1:6379 --raylet_socket_name=a",
        " 12 python log_monitor.py --gcs-address=10.0.0.1:6379 --b",
        " 20 /x/raylet --gcs-address=10.0.0.2:6390",
        " 30 vim notes-about-6379.txt",
    ]
    found = sorted(ray_processes(listing), key=lambda process: process.pid)
    assert found == [
        RayProcess(10, "10.0.0.1:6379"),
        RayProcess(11, "10.0.0.1:6379"),
        RayProcess(12, "10.0.0.1:6379"),
        RayProcess(20, "10.0.0.2:6390"),
    ]


def test_stop_ends_the_node_of_one_cluster_only(capsys: pytest.CaptureFixture[str]) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(100)"]
    mine = subprocess.Popen([*sleep, "raylet", "--gcs-address=127.0.0.1:59171"])
    other = subprocess.Popen([*sleep, "raylet", "--gcs-address=127.0.0.1:59172"])
    try:
        assert main(["cluster", "stop", "127.0.0.1:59171"]) == 0
        assert "the cluster at 127.0.0.1:59171 has ended on this machine" in capsys.readouterr().out
        assert (mine.wait(5), other.poll()) == (-signal.SIGTERM, None)
        assert main(["cluster", "stop", "127.0.0.1:59171"]) == 2
        assert "no node of the cluster at 127.0.0.1:59171 is running on this machine" in capsys.readouterr().err
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()
