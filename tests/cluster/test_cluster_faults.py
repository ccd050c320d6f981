"""Every fault that a cluster can meet, with real processes and real kills; each run ends with the undisturbed bits."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_helpers import SMALL, Training, bits, undisturbed, wait_for

SLOW = "cluster_worlds:make_slow"
OPTIONS: dict[str, Any] = {"generations": 8, "env_kwargs": {"pause": 0.002}}
LONG = OPTIONS | {"generations": 40}
pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return undisturbed(tmp_path_factory.mktemp("alone") / "run", SLOW, **OPTIONS)


@pytest.fixture(scope="module")
def long_expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return undisturbed(tmp_path_factory.mktemp("alone") / "long", SLOW, **LONG)


@pytest.fixture
def long_training(two_nodes: Any, tmp_path: Path) -> Training:
    """Long enough for a node to join while it goes on."""
    return Training(tmp_path / f"run-{tmp_path.name}", SLOW, **LONG)


@pytest.fixture
def training(two_nodes: Any, tmp_path: Path) -> Training:
    return Training(tmp_path / f"run-{tmp_path.name}", SLOW, **OPTIONS)


def nodes_of(training: Training) -> list[tuple[str, int]]:
    """The node and the process of every engine of a run."""
    import ray

    return list(ray.get(training.coordinator.engines.remote(), timeout=30))


def test_worker_stopped_in_mid_episode(training: Training, expected: bytes) -> None:
    training.reach(2)
    children = subprocess.run(
        ["pgrep", "-P", str(nodes_of(training)[0][1]), "-f", "esker.engines.worker"], capture_output=True, text=True
    )
    os.kill(int(children.stdout.split()[0]), signal.SIGSTOP)
    assert training.finish() == expected


def test_node_engine_killed(training: Training, expected: bytes) -> None:
    training.reach(2)
    os.kill(nodes_of(training)[0][1], signal.SIGKILL)
    assert training.finish() == expected
    assert any("was lost" in text for text in training.notes)


def test_raylet_killed(training: Training, two_nodes: Any, expected: bytes) -> None:
    training.reach(2)
    node = list(two_nodes.cluster.worker_nodes)[-1]
    os.kill(two_nodes.raylet(node), signal.SIGKILL)
    assert training.finish() == expected


def test_raylet_of_the_coordinators_node_killed(training: Training, two_nodes: Any, expected: bytes) -> None:
    import ray

    training.reach(2)
    home = ray.get(training.coordinator.node.remote(), timeout=30)
    node = next(node for node in two_nodes.cluster.worker_nodes if node.node_id == home)
    os.kill(two_nodes.raylet(node), signal.SIGKILL)
    assert training.finish() == expected


def test_coordinator_killed_during_evaluation(training: Training, expected: bytes) -> None:
    training.reach(2)
    for _ in range(2):
        os.kill(training.pid(), signal.SIGKILL)
        seen = len(training.rows)
        training.reach(seen + 1)
    assert training.finish() == expected


@pytest.mark.parametrize("after", [0.0, 0.002, 0.01], ids=["during commit", "after commit", "during update"])
def test_coordinator_killed_around_a_commit(training: Training, expected: bytes, after: float) -> None:
    training.reach(1)
    pid, facts = training.pid(), training.path / "facts"
    length = facts.stat().st_size
    while facts.stat().st_size == length:
        pass
    time.sleep(after)
    os.kill(pid, signal.SIGKILL)
    assert training.finish() == expected


def test_driver_killed(two_nodes: Any, tmp_path: Path, expected: bytes) -> None:
    import ray

    path = tmp_path / "orphan"
    code = f"import esker; esker.train({SLOW!r}, engine='ray', address={two_nodes.address!r}, run_dir={str(path)!r}, "
    code += ", ".join(f"{name}={value!r}" for name, value in (SMALL | OPTIONS).items()) + ")"
    driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = path / "journal.jsonl"
    wait_for(lambda: journal.exists() and journal.read_text().count("\n") >= 2, within=90)
    driver.kill()
    driver.wait()
    coordinator = ray.get_actor("orphan", namespace="esker")
    wait_for(lambda: ray.get(coordinator.summary.remote(), timeout=60).status == "finished", within=120, every=0.5)
    assert bits(path) == expected


def test_nodes_join_and_leave_every_few_seconds(two_nodes: Any, tmp_path: Path) -> None:
    options = OPTIONS | {"generations": 40}
    training = Training(tmp_path / "churn", SLOW, **options)
    training.reach(1)
    chance = random.Random(0)
    guests: list[Any] = []
    until = time.monotonic() + 60
    while time.monotonic() < until and len(training.rows) < 38:
        if guests and chance.random() < 0.6:
            two_nodes.remove(guests.pop(0), graceful=chance.random() < 0.5)
        else:
            guests.append(two_nodes.add())
        time.sleep(2)
    assert training.finish(300) == undisturbed(tmp_path / "alone", SLOW, **options)


def test_all_workers_gone_and_one_comes_back(training: Training, two_nodes: Any, expected: bytes) -> None:
    training.reach(2)
    for node in list(two_nodes.cluster.worker_nodes)[-2:]:
        two_nodes.remove(node, graceful=False)
    time.sleep(3)
    two_nodes.add()
    assert training.finish(180) == expected


def test_a_joining_node_is_used_within_twenty_seconds(long_training: Training, two_nodes: Any, long_expected: bytes) -> None:
    long_training.reach(3)
    before = len(nodes_of(long_training))
    started = time.monotonic()
    two_nodes.add()
    wait_for(lambda: len(nodes_of(long_training)) > before, within=20, every=0.2)
    assert time.monotonic() - started < 20
    assert long_training.finish() == long_expected


def test_a_node_that_computes_other_bits_is_ignored(long_training: Training, two_nodes: Any, long_expected: bytes) -> None:
    long_training.reach(1)
    two_nodes.add(env_vars={"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX2 FMA3"})
    wait_for(lambda: any("computes other bits" in text for text in long_training.notes), within=40)
    assert long_training.finish() == long_expected


def test_a_node_with_another_version_is_ignored(
    long_training: Training, two_nodes: Any, long_expected: bytes, tmp_path: Path
) -> None:
    metadata = tmp_path / "other" / "ray-9.9.9.dist-info" / "METADATA"  # found there before the installed one
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: ray\nVersion: 9.9.9\n")
    long_training.reach(1)
    path = os.pathsep.join([str(tmp_path / "other"), os.environ["PYTHONPATH"]])
    two_nodes.add(env_vars={"PYTHONPATH": path})
    wait_for(lambda: any("is not used: it has ray 9.9.9" in text for text in long_training.notes), within=40)
    assert long_training.finish() == long_expected


class OwnCluster:
    """Nodes started as a user would start them, each a process group that can be killed."""

    def __init__(self, folder: Path, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.sessions = Path(tempfile.mkdtemp(prefix="er", dir="/tmp"))  # short, because sockets have their names from it
        self.environment = os.environ | {"XDG_CONFIG_HOME": str(folder / "good"), "RAY_TMPDIR": str(self.sessions)}
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "esker", "cluster", *arguments, "--block"]
        log = self.sessions / f"log{len(self.processes)}"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, env=self.environment, start_new_session=True, stdout=file, stderr=subprocess.STDOUT
            )
        self.processes.append(process)
        wait_for(lambda: "block forever" in log.read_text() or process.poll() is not None, within=120, every=0.2)
        assert process.poll() is None, log.read_text()
        return process

    def train(self, folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "esker", "train", *arguments, "--engine", "ray", "--address", self.address]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=self.environment | environment, cwd=folder, **pipes)  # type: ignore[call-overload]

    def close(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
                process.wait(60)
        shutil.rmtree(self.sessions, ignore_errors=True)


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[OwnCluster]:
    cluster = OwnCluster(tmp_path, 6497)
    yield cluster
    cluster.close()


def test_a_wrong_token_is_refused(own_cluster: OwnCluster, tmp_path: Path) -> None:
    own_cluster.start("head", "--port", "6497", "--workers", "1")
    bad = {"XDG_CONFIG_HOME": str(tmp_path / "bad")}
    make = "from esker.cluster.token import ensure_token; ensure_token()"
    subprocess.run([sys.executable, "-c", make], env=os.environ | bad, check=True)
    refused = own_cluster.train(tmp_path, "CartPole-v1", "--generations", "1", **bad)
    assert re.search(
        r"does not let us in; is the token in \S+ a copy|refused our token", refused.communicate(timeout=180)[1]
    )
    assert refused.returncode == 2
    taken = own_cluster.train(tmp_path, "CartPole-v1", "--generations", "1")
    assert taken.wait(180) == 0


def test_a_head_that_keeps_its_state_is_killed_and_started_again(own_cluster: OwnCluster, tmp_path: Path) -> None:
    head = ["head", "--port", "6497", "--workers", "0", "--persist", str(tmp_path / "gcs")]
    first = own_cluster.start(*head)
    own_cluster.start("join", own_cluster.address, "--workers", "1")
    flags = ["--preset", "none", "--population", "20", "--hidden", "8", "--center-episodes", "2", "--slots", "4"]
    flags += ["--noise", "counter", "--generations", "20", "--env-kwargs", '{"pause": 0.002}', "--run-dir", "headless"]
    viewer = own_cluster.train(tmp_path, SLOW, *flags)
    journal = tmp_path / "headless" / "journal.jsonl"
    wait_for(lambda: journal.exists() and journal.read_text().count("\n") >= 2, within=120)
    os.killpg(first.pid, signal.SIGKILL)
    time.sleep(3)
    for note in own_cluster.sessions.rglob("ray_current_cluster"):  # on one machine, Ray takes a node for the old head
        note.unlink()
    own_cluster.start(*head)
    status = tmp_path / "headless" / "status"
    wait_for(lambda: status.read_text().startswith("finished"), within=180, every=0.5)
    viewer.kill()
    assert bits(tmp_path / "headless") == undisturbed(tmp_path / "alone", SLOW, **OPTIONS | {"generations": 20})
