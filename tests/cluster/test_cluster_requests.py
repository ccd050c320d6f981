"""Wrong requests to a cluster: status 2, one line, what is missing and what there is."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import gymnasium
import pytest
from cluster_helpers import SMALL

import esker
from esker.cluster.connect import join
from esker.cluster.machine import worker_ports
from esker.cluster.token import ensure_token
from esker.engines.demand import Demand
from esker.engines.roster import Roster
from esker.errors import RunError, UsageError
from esker.runs.request import configure
from esker.system.cores import available_cores

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
        ("somewhere", "expected HOST:PORT or auto"),
        ("ray://127.0.0.1:10001", "give HOST:PORT"),
    ],
)
def test_an_address_without_a_cluster_is_named(address: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        join(address)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"address": "127.0.0.1:6379"}, "add --engine ray"),
        ({"working_dir": "."}, "add --engine ray"),
        ({"engine": "ray", "workers": 0}, "needs at least one"),
        ({"engine": "ray", "resources": {"machine": 0}}, "expected a number above 0"),
        ({"engine": "rya"}, "expected one of local, ray"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        configure("CartPole-v1", options, preset=None)


def test_the_command_says_in_one_line_that_no_cluster_responds(cli: Cli) -> None:
    done = cli("train", "CartPole-v1", "--engine", "ray", "--address", "127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr.startswith("esker: error: no Ray cluster answers at 127.0.0.1:1")
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_and_a_head_that_does_not_respond_are_refused(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = cli("cluster", "head", "--port", port)
        assert (done.returncode, f"port {port} is in use" in done.stderr) == (2, True)
    done = cli("cluster", "join", f"127.0.0.1:{port}")
    assert (done.returncode, "no Ray cluster answers" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("port", "flags"),
    [
        (6379, []),
        (12345, ["--min-worker-port=12346", "--max-worker-port=19999"]),
        (19999, ["--min-worker-port=10002", "--max-worker-port=19998"]),
    ],
)
def test_the_workers_of_a_head_keep_off_its_port(port: int, flags: list[str]) -> None:
    assert worker_ports(port) == flags


def test_a_port_that_ray_needs_itself_is_refused_with_a_usable_one(cli: Cli) -> None:
    done = cli("cluster", "head", "--port", "10001")
    assert done.returncode == 2
    usable = re.fullmatch(r"esker: error: port 10001 is Ray's own for its client; use --port (\d+)\n", done.stderr)
    with socket.socket() as probe:
        probe.bind(("", int(usable[1])))


def test_the_token_is_made_once_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = ensure_token()
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_text()) == 64
    assert ensure_token().read_text() == path.read_text()
    path.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        ensure_token()


def test_a_node_gives_the_workers_that_its_resources_allow() -> None:
    offered = {"CPU": 8.0, "GPU": 1.0, "machine": 1.0}
    assert Demand().workers_on(offered) == 8
    assert Demand(cpus_per_worker=0.5).workers_on(offered) == 16
    assert Demand(cpus_per_worker=3).workers_on(offered) == 2
    assert Demand(gpus_per_node=1, resources={"machine": 1}).workers_on(offered) == 8
    assert Demand(gpus_per_node=2).workers_on(offered) == 0
    assert Demand(resources={"disk": 1}).workers_on(offered) == 0
    assert Demand(1, cpus_per_worker=0, gpus_per_node=1).workers_on({"GPU": 1.0}) == 1
    assert Demand(1, cpus_per_worker=0, gpus_per_node=1).workers_on({"CPU": 8.0}) == 0


def test_what_no_node_offers_is_named_with_what_there_is(machines: Any, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    with pytest.raises(UsageError, match="no node of the cluster offers 1 CPU; there are: "):
        esker.train("CartPole-v1", engine="ray", run_dir=run, **SMALL)
    node = machines.add(2)
    try:
        with pytest.raises(UsageError, match=r"offers 1 CPU, 1 machine; there are: .* with 2 CPU"):
            esker.train("CartPole-v1", engine="ray", resources={"machine": 1}, run_dir=run, **SMALL)
    finally:
        machines.remove(node)
    assert not Path(run).exists()


def test_an_environment_that_only_the_driver_can_import_is_named_with_the_node(two_nodes: Any, tmp_path: Path) -> None:
    module = types.ModuleType("only_here")
    module.make = lambda: gymnasium.make("CartPole-v1")  # type: ignore[attr-defined]
    sys.modules["only_here"] = module
    with pytest.raises((UsageError, RunError)) as caught:  # a coordinator that died meanwhile only knows that the run failed
        esker.train("only_here:make", engine="ray", run_dir=str(tmp_path / "run"), **SMALL)
    assert re.search(r"node \S+ \([0-9a-f]{6}\) is not used", str(caught.value))
    assert "cannot import 'only_here'" in str(caught.value)


def test_what_is_known_of_the_nodes_is_told_when_none_is_ready_in_time() -> None:
    """A busy machine may not even have started a second node by then."""
    roster = Roster.__new__(Roster)
    late = SimpleNamespace(name="b (bbbbbb)", opening=object())
    roster.__dict__ |= {"_lock": threading.Lock(), "_nodes": {"b": late}, "refusals": {"a": "node a (aaaaaa) is not used"}}
    with pytest.raises(RunError, match=r"ready within 120 s; node a \(aaaaaa\) is not used; node b .* is still starting"):
        roster.give_up(time.monotonic() - 121)


SENT = """
import sys
import gymnasium

class Telltale(gymnasium.Wrapper):
    def step(self, action):
        if "esker.engines.worker" in sys.orig_argv:
            raise ValueError("imported from " + __file__)
        return self.env.step(action)

def make():
    return Telltale(gymnasium.make("CartPole-v1"))
"""


def test_a_working_folder_is_sent_to_the_nodes(cli: Cli, two_nodes: Any, tmp_path: Path) -> None:
    (tmp_path / "telltale.py").write_text(SENT)
    flags = ["--engine", "ray", "--address", two_nodes.address, "--working-dir", ".", "--run-dir", "runs/sent"]
    done = cli("train", "telltale:make", "--population", "4", "--hidden", "4", "--noise", "counter", *flags)
    assert done.returncode == 1
    assert "working_dir_files" in done.stderr  # not the driver's folder, although the nodes of this test could read it
    assert "telltale:make, generation 0" in done.stderr


def test_a_viewer_waits_for_a_coordinator_that_does_not_respond(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import ray

    from esker.cluster import viewer
    from esker.cluster.coordinator import End, News

    answers: list[Any] = [
        ray.exceptions.GetTimeoutError(),  # type: ignore[no-untyped-call]
        ray.exceptions.GetTimeoutError(),  # type: ignore[no-untyped-call]
        None,  # no configuration yet
        News(1, [], [], End("refused", "node a is not used")),
    ]

    def get(call: Any, timeout: float) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    said: list[str] = []
    monkeypatch.setattr(ray, "get", get)
    end = viewer.watch(Mock(), "run", tmp_path, Mock(note=said.append))
    assert end == End("refused", "node a is not used")
    assert said == ["the coordinator does not respond: waiting for it to come back"]


def test_more_workers_than_this_machine_has_cores_for_start_as_many_as_there_are(cli: Cli, tmp_path: Path) -> None:
    cores = available_cores()
    flags = ["--engine", "ray", "--preset", "none", "--population", 4, "--generations", 1, "--hidden", 4, "--run-dir", "r"]
    done = cli("train", "CartPole-v1", *flags, "--noise", "counter", "--config", '{"num_workers": 900}')
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert f"900 workers were requested and this machine has cores for {cores}: that many start" in text
    assert (tmp_path / "r" / "checkpoints" / "000001").is_dir()
