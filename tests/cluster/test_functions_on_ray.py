"""A user's own reward on a Ray cluster: the bits of one process, elastic, and one-line errors that name the node."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest
import ray
import torch
from cluster_helpers import wait_for
from torch import nn

import esker
from esker.cluster import connect
from esker.engines.ray import RayEngine
from esker.runs.folder import RunFolder

NAME = "test_functions_on_ray:reward"
OPTIONS: dict[str, Any] = {"population": 16, "lr": 0.05, "quiet": True, "table_size": 10_000, "final": "last"}


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))


def reward(network: nn.Module, seed: int) -> float:
    x = torch.randn(16, 2, generator=torch.Generator().manual_seed(seed))
    return -float(((network(x) - x.sum(1, keepdim=True)) ** 2).mean().detach())


def bits(network: nn.Module) -> bytes:
    return nn.utils.parameters_to_vector(network.parameters()).detach().numpy().tobytes()


def alone(iterations: int, **options: Any) -> bytes:
    network = model()
    esker.Evolution(network, reward, **OPTIONS | options | {"workers": 0}).run(iterations)
    return bits(network)


@pytest.mark.faults
def test_a_bare_function_of_a_tensor_is_evaluated_on_the_cluster_and_resumes(two_nodes: Any, tmp_path: Path) -> None:
    def sphere(x: torch.Tensor) -> float:
        return -float((x**2).sum())

    options = OPTIONS | {"noise": "counter"}
    here, there = torch.ones(5), torch.ones(5)
    esker.Evolution(here, sphere, **options, workers=0).run(4)
    run = tmp_path / "run"
    esker.Evolution(there, sphere, engine="ray", address=two_nodes.address, run_dir=str(run), **options).run(2)
    esker.Evolution.resume(run, there, sphere).run(2)
    assert torch.equal(here, there)


def test_a_killed_node_engine_costs_only_its_members(two_nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[RayEngine] = []
    killed: list[int] = []

    def opened(*arguments: Any) -> RayEngine:
        engines.append(RayEngine(*arguments))
        return engines[-1]

    def seen(row: dict[str, Any]) -> None:
        nodes = engines[0].nodes
        if not killed and len(nodes) == 2:
            killed.append(nodes[0].pid)
            os.kill(nodes[0].pid, signal.SIGKILL)

    monkeypatch.setattr("esker.engines.ray.RayEngine", opened)
    network = model()
    evolution = esker.Evolution(network, reward, engine="ray", address=two_nodes.address, on_iteration=seen, **OPTIONS)
    evolution.run(40)
    assert killed
    assert any("was lost" in notice for notice in evolution.notices)
    assert bits(network) == alone(40)


def test_a_run_is_listed_watched_and_stopped_from_elsewhere_and_resumes(two_nodes: Any, tmp_path: Path, cli: Any) -> None:
    network, path, options = model(), tmp_path / "evolving", OPTIONS | {"engine": "ray", "address": two_nodes.address}
    evolution = esker.Evolution(network, reward, run_dir=str(path), **options)
    ended: list[BaseException] = []

    def watch() -> None:
        try:
            evolution.run(5000)
        except KeyboardInterrupt as error:
            ended.append(error)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    wait_for(lambda: len(evolution.history) >= 3, 120)
    listed = json.loads(cli("runs", "--cluster", "--address", two_nodes.address, "--json").stdout)
    run = next(run for run in listed if run["name"] == "evolving")
    assert (run["env"], run["algo"], run["status"], run["workers"] >= 1) == (NAME, "function", "running", True)
    done = cli("stop", "evolving", "--address", two_nodes.address)
    assert (done.returncode, "evolving: interrupted; continue with: " in done.stdout) == (0, True)
    thread.join(60)
    assert "esker.Evolution.resume(" in str(ended[0])
    count = evolution.iteration
    assert bits(network) == alone(count)
    esker.Evolution.resume(path, network, reward, engine="local", address=None, workers=0).run(1)
    assert bits(network) == alone(count + 1)
    attached = cli("attach", "evolving", "--address", two_nodes.address)
    assert attached.returncode == 0, attached.stderr
    assert f"{count - 1:,}" in attached.stdout


BEGIN = """
import sys
import test_functions_on_ray as here
import esker

options = here.OPTIONS | {"engine": "ray", "address": sys.argv[1], "log": "csv"}
esker.Evolution(here.model, here.reward, run_dir=sys.argv[2], **options).run(60)
"""


@pytest.mark.faults
def test_a_killed_starter_and_a_killed_coordinator_leave_a_run_that_ends_with_the_same_bits(
    two_nodes: Any, tmp_path: Path, cli: Any
) -> None:
    path = tmp_path / "orphan"
    if not connect.connected():
        connect.join(two_nodes.address)
    starter = subprocess.Popen([sys.executable, "-c", BEGIN, two_nodes.address, str(path)])
    wait_for(lambda: len(RunFolder(path).rows()) >= 2, 120)
    starter.kill()
    starter.wait(10)
    os.kill(ray.get(ray.get_actor("orphan", namespace="esker").pid.remote()), signal.SIGKILL)
    attached = cli("attach", "orphan", "--address", two_nodes.address)
    assert attached.returncode == 0, attached.stderr
    assert "60 generations done" in attached.stdout
    wait_for(lambda: RunFolder(path).status().startswith("finished"), 30)
    network = model()
    again = esker.Evolution.resume(path, network, reward, engine="local", address=None, workers=0)
    assert (again.iteration, bits(network)) == (60, alone(60))
    assert (path / "metrics.csv").read_text().count("\n") == 61  # written by both coordinators


def test_what_cannot_be_sent_and_what_a_node_lacks_is_reported_in_one_line(two_nodes: Any, tmp_path: Path) -> None:
    lock = threading.Lock()

    def locked(network: nn.Module) -> float:
        with lock:
            return 0.0

    with pytest.raises(esker.UsageError, match="its variable 'lock' is a lock") as caught:
        esker.Evolution(model(), locked, engine="ray", **OPTIONS).run(1)
    assert "\n" not in str(caught.value)
    only_here = types.ModuleType("only_here")
    exec("def reward(network): return 0.0", only_here.__dict__)
    only_here.reward.__module__ = "only_here"
    sys.modules["only_here"] = only_here
    try:
        with pytest.raises(esker.UsageError, match=r"node .* is not used: .*No module named 'only_here'") as caught:
            esker.Evolution(model(), only_here.reward, engine="ray", **OPTIONS).run(1)
    finally:
        del sys.modules["only_here"]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"address": "127.0.0.1:6379"}, "add --engine ray"),
        ({"engine": "ray", "executor": "threads"}, "a Ray engine has worker processes"),
        ({"engine": "ray", "workers": 0}, "needs at least one"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(esker.UsageError, match=said):
        esker.Evolution(model(), reward, **OPTIONS | options)
