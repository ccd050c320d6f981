"""Every fault that a cluster can meet, with real processes and real kills; each run ends with the undisturbed bits."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_helpers import SMALL, Training, bits, committed, undisturbed, wait_for
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from wandb_records import history, run_record

import esker

SLOW = "cluster_worlds:make_slow"
OPTIONS: dict[str, Any] = {"generations": 8, "env_kwargs": {"pause": 0.002}}
pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return undisturbed(tmp_path_factory.mktemp("alone") / "run", SLOW, **OPTIONS)


@pytest.fixture
def training(two_nodes: Any, tmp_path: Path) -> Training:
    return Training(tmp_path / f"run-{tmp_path.name}", SLOW, **OPTIONS)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_worker_killed_or_stopped_in_mid_episode(training: Training, expected: bytes, number: signal.Signals) -> None:
    training.reach(2)
    engine = str(training.engines()[0][1])
    with training.held():
        children = subprocess.run(["pgrep", "-P", engine, "-f", "esker.engines.worker"], capture_output=True, text=True)
        os.kill(int(children.stdout.split()[0]), number)
    assert training.finish() == expected


def test_node_engine_killed(training: Training, expected: bytes) -> None:
    training.reach(2)
    with training.held():
        os.kill(training.engines()[0][1], signal.SIGKILL)
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


def test_coordinator_killed_during_evaluation_twice(training: Training, expected: bytes) -> None:
    training.reach(2)
    for _ in range(2):
        with training.held():
            os.kill(training.pid(), signal.SIGKILL)
        training.reach(committed(training.path) + 1)
    assert training.finish() == expected


def test_coordinator_killed_during_an_update(two_nodes: Any, tmp_path: Path) -> None:
    big = {"generations": 4, "population": 300, "hidden": (512, 512), "checkpoint_every": 2, "env_kwargs": {"pause": 0.0}}
    training = Training(tmp_path / "updating", SLOW, **big)
    training.reach(1)
    pid, before = training.pid(), committed(training.path)
    wait_for(lambda: committed(training.path) > before, every=0.001)
    time.sleep(0.05)  # the other node's acknowledgment takes a few milliseconds, the update half a second
    os.kill(pid, signal.SIGKILL)
    rows = (training.path / "journal.jsonl").read_text().count("\n")
    assert rows < committed(training.path)  # a row is written once its update is done
    assert training.finish() == undisturbed(tmp_path / "alone", SLOW, **big)


@pytest.mark.parametrize("torn", [0, 9], ids=["not acknowledged yet", "half on disk"])
def test_coordinator_killed_during_a_commit(training: Training, expected: bytes, torn: int) -> None:
    training.reach(2)
    pid, (_, engine) = training.pid(), training.other_engine()
    before = committed(training.path)
    os.kill(engine, signal.SIGSTOP)  # it acknowledges nothing: whatever is committed next is committed for ten seconds
    try:
        wait_for(lambda: committed(training.path) > before)
        os.kill(pid, signal.SIGKILL)
        facts = training.path / "facts"
        os.truncate(facts, facts.stat().st_size - torn)
    finally:
        os.kill(engine, signal.SIGCONT)
    assert training.finish() == expected


def test_a_commit_that_no_other_node_acknowledges_is_reported(training: Training, expected: bytes) -> None:
    training.reach(1)
    _, engine = training.other_engine()
    os.kill(engine, signal.SIGSTOP)
    said = lambda text: any(text in note for note in training.notes)  # noqa: E731
    wait_for(lambda: said("until one does, what is committed is on the coordinator's disk only"))
    seen = len(training.rows)
    started = time.monotonic()
    training.reach(seen + 1)
    assert time.monotonic() - started < 9  # the silent node is not waited for again
    os.kill(engine, signal.SIGCONT)
    wait_for(lambda: said("another node has acknowledged everything up to generation"))
    assert training.finish() == expected


@pytest.mark.parametrize("disk_survives", [True, False])
def test_logging_continues_from_wherever_the_coordinator_lives(two_nodes: Any, tmp_path: Path, disk_survives: bool) -> None:
    options = OPTIONS | {"log": ("csv", "tensorboard", "wandb"), "wandb_mode": "offline", "checkpoint_every": 2}
    training = Training(tmp_path / f"logged{disk_survives}", SLOW, **options)
    training.reach(4)
    identity = json.loads((training.path / "wandb.json").read_text())["id"]
    with training.held():
        os.kill(training.pid(), signal.SIGKILL)
        if not disk_survives:
            shutil.rmtree(training.path)
    training.finish()
    assert [int(row["generation"]) for row in csv.DictReader((training.path / "metrics.csv").open())] == list(range(8))
    steps = [row["env_steps"] for row in training.rows]
    board = EventAccumulator(str(training.path / "tensorboard")).Reload()
    assert [event.step for event in board.Scalars("es/center_return")] == steps
    newest = max(training.path.glob("wandb/offline-run-*/*.wandb"), key=lambda log: log.stat().st_mtime)
    assert run_record(newest).run_id == identity
    logged = [row["_step"] for row in history(newest)]  # what W&B had not written yet when it was killed is lost offline
    assert len(logged) >= 8 - 4 - 1
    assert logged == steps[-len(logged) :]


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


def test_nodes_join_and_leave_every_few_seconds_for_a_minute(two_nodes: Any, tmp_path: Path) -> None:
    options = OPTIONS | {"generations": 40}
    training = Training(tmp_path / "churn", SLOW, **options)
    training.reach(1)
    chance = random.Random(0)
    guests: list[Any] = []
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if len(training.rows) >= 20:
            training.hold.touch()  # a fast machine waits with half of the run until the minute is over
        if guests and chance.random() < 0.6:
            two_nodes.remove(guests.pop(0), graceful=chance.random() < 0.5)
        else:
            guests.append(two_nodes.add())
        time.sleep(2)
    assert len(training.rows) < 40
    training.hold.unlink(missing_ok=True)
    assert training.finish() == undisturbed(tmp_path / "alone", SLOW, **options)


def test_all_workers_gone_and_one_comes_back(training: Training, two_nodes: Any, expected: bytes) -> None:
    training.reach(2)
    for node in list(two_nodes.cluster.worker_nodes)[-2:]:
        two_nodes.remove(node, graceful=False)
    time.sleep(3)
    two_nodes.add()
    assert training.finish(180) == expected


def test_a_joining_node_is_used_within_twenty_seconds(training: Training, two_nodes: Any, expected: bytes) -> None:
    training.reach(2)
    with training.held():
        before = len(training.engines())
        two_nodes.add()
        wait_for(lambda: len(training.engines()) > before, within=20, every=0.2)
    assert training.finish() == expected


def test_a_node_that_computes_other_bits_is_ignored(training: Training, two_nodes: Any, expected: bytes) -> None:
    training.reach(1)
    with training.held():
        two_nodes.add(env_vars={"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX2 FMA3"})
        wait_for(lambda: any("computes other bits" in text for text in training.notes))
    assert training.finish() == expected


def other_ray(folder: Path) -> None:
    metadata = folder / "ray-9.9.9.dist-info" / "METADATA"  # found there before the installed one
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: ray\nVersion: 9.9.9\n")


def other_esker(folder: Path) -> None:
    shutil.copytree(Path(esker.__file__).parent, folder / "esker", ignore=shutil.ignore_patterns("__pycache__"))
    package = folder / "esker" / "__init__.py"
    package.write_text(package.read_text().replace(f'__version__ = "{esker.__version__}"', '__version__ = "9.9.9"'))
    (folder / "sitecustomize.py").write_text("import esker\n")  # before Ray puts the driver's folders in front of ours


def other_python(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("import platform\nplatform.python_version_tuple = lambda: ('9', '9', '9')\n")


@pytest.mark.parametrize(
    ("disguise", "said"), [(other_esker, "esker 9.9.9"), (other_ray, "ray 9.9.9"), (other_python, "python 9.9")]
)
def test_a_node_with_another_version_is_ignored(
    training: Training, two_nodes: Any, expected: bytes, tmp_path: Path, disguise: Callable[[Path], None], said: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    disguise(other)
    training.reach(1)
    with training.held():
        two_nodes.add(env_vars={"PYTHONPATH": os.pathsep.join([str(other), os.environ["PYTHONPATH"]])})
        wait_for(lambda: any(f"is not used: it has {said} (the run: " in text for text in training.notes))
    assert training.finish() == expected


class OwnCluster:
    """Nodes started as a user would start them, each a process group that can be killed."""

    def __init__(self, folder: Path, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.sessions = Path(tempfile.mkdtemp(prefix="er", dir="/tmp"))  # short, because sockets have their names from it
        self.environment = os.environ | {"XDG_CONFIG_HOME": str(folder / "good"), "RAY_TMPDIR": str(self.sessions)}
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "esker", "cluster", *arguments, "--block"]
        log = self.sessions / f"log{len(self.processes)}"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, env=self.environment | environment, start_new_session=True, stdout=file, stderr=subprocess.STDOUT
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
        r"refused the connection; is the token in \S+ a copy|refused the token", refused.communicate(timeout=180)[1]
    )
    assert refused.returncode == 2
    taken = own_cluster.train(tmp_path, "CartPole-v1", "--generations", "1")
    assert taken.wait(180) == 0


@pytest.fixture(params=["rocksdb", "redis"])
def start_head(
    request: pytest.FixtureRequest, own_cluster: OwnCluster, tmp_path: Path
) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts a head that keeps its state."""
    command = ["head", "--port", "6497", "--workers", "0"]
    if request.param == "rocksdb":
        yield lambda: own_cluster.start(*command, "--persist", str(tmp_path / "gcs"))
        return
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    redis = subprocess.Popen(["redis-server", "--port", "6498", "--dir", str(tmp_path)], stdout=subprocess.DEVNULL)
    yield lambda: own_cluster.start(*command, RAY_REDIS_ADDRESS="127.0.0.1:6498")
    redis.terminate()
    redis.wait(30)


def test_a_head_that_keeps_its_state_is_killed_and_started_again(
    own_cluster: OwnCluster, start_head: Callable[[], subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    first = start_head()
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
    start_head()
    status = tmp_path / "headless" / "status"
    wait_for(lambda: status.read_text().startswith("finished"), within=180, every=0.5)
    viewer.kill()
    assert bits(tmp_path / "headless") == undisturbed(tmp_path / "alone", SLOW, **OPTIONS | {"generations": 20})
