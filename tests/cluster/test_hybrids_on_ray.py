"""The algorithms with gradients on a cluster: the bits of one process, whatever comes, goes or dies on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cluster_helpers import Training, bits, wait_for

import esker
from esker.algorithms import hybrid_setup
from esker.algorithms.algorithm import Workers
from esker.cluster import connect
from esker.config.hybrids import AESRLConfig
from esker.engines import demand
from esker.engines.ray_pool import RayPool
from esker.errors import UsageError
from esker.learners.rows import SharedRows
from esker.runs.request import configure

ENV = "cluster_worlds:Trudging"
SMALL: dict[str, Any] = {
    "preset": None,
    "hidden": (8, 8),
    "batch_size": 8,
    "initial_steps": 40,
    "center_episodes": 2,
    "keep": None,
    "checkpoint_every": 1,
}
CEM: dict[str, Any] = {"algo": "cem-rl", "population": 4, "rl_population": 2}
P_CEM = CEM | {"algo": "p-cem-rl"}
AES: dict[str, Any] = {
    "algo": "aes-rl",
    "results_per_generation": 3,
    "mean_episodes": 2,
    "critic_chunk": 20,
    "mean_update_param": 5.0,
}


class Hybrid(Training):
    """A run with gradients on the cluster, with its coordinator at hand."""

    base = SMALL

    def node_pids(self) -> list[int]:
        """The Ray actors of the nodes in use."""
        import ray

        return [pid for _, pid in ray.get(self.coordinator.engines.remote(), timeout=30)]


def alone(path: Path, **options: Any) -> bytes:
    """The state that the same request gives inside one process, without pauses."""
    esker.train(ENV, run_dir=str(path), quiet=True, env_kwargs={"pause": 0.0}, **(SMALL | options | {"workers": 0}))
    return bits(path)


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[RayPool]:
    """The pools that runs in this process open."""
    opened: list[RayPool] = []
    make = hybrid_setup.ray_pool

    def remembered(*arguments: Any) -> RayPool:
        opened.append(make(*arguments))
        return opened[-1]

    monkeypatch.setattr(hybrid_setup, "ray_pool", remembered)
    return opened


def here(path: Path, see: Callable[[dict[str, Any]], Any], **options: Any) -> esker.Run:
    """A run on the cluster whose loop is in this process, since a callback belongs there."""
    return esker.train(ENV, run_dir=str(path), engine="ray", quiet=True, on_generation=see, **(SMALL | options))


@pytest.mark.parametrize(
    "algo", [pytest.param(CEM, id="cem-rl"), pytest.param(P_CEM, id="p-cem-rl", marks=pytest.mark.faults)]
)
def test_a_killed_ray_actor_changes_no_bit(two_nodes: Any, tmp_path: Path, algo: dict[str, Any]) -> None:
    options = algo | {"generations": 6, "workers": 2}
    expected = alone(tmp_path / "alone", **options)
    training = Hybrid(tmp_path / f"run-{algo['algo']}", ENV, **options)
    training.reach(2)
    os.kill(training.node_pids()[0], signal.SIGKILL)
    assert training.finish() == expected
    assert any("was lost" in text for text in training.notes)
    assert len((training.path / "journal.jsonl").read_text().splitlines()) == 6


@pytest.mark.faults
def test_the_critics_process_and_an_actors_node_may_die_in_an_asynchronous_run(
    two_nodes: Any, tmp_path: Path, pools: list[RayPool]
) -> None:
    killed: list[int] = []

    def see(row: dict[str, Any]) -> bool:
        if row["critic_updates"] > 0 and not killed:
            (pool,) = pools
            killed.extend(node.pid for node in (*pool.critic_nodes, pool.nodes[0]))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            see.updates = row["critic_updates"]  # type: ignore[attr-defined]
        return bool(killed) and row["critic_updates"] > see.updates + 100  # type: ignore[attr-defined]

    run = here(tmp_path / "run", see, workers=2, wall_time=90.0, **AES)
    assert len(killed) == 2
    assert run.history[-1]["critic_updates"] > 100
    for row in run.history:
        assert row["critic_updates"] <= row["training_steps"]
    file = np.fromfile(run.path / "replay", dtype=np.float32).reshape(-1, 7)
    steps = run.history[-1]["training_steps"]
    assert np.isfinite(file[:steps]).all()
    assert (np.abs(file[:steps]).sum(axis=1) > 0).all()  # every row that was answered is there


def test_a_window_that_slides_is_sent_once_and_an_older_one_again(two_nodes: Any, tmp_path: Path) -> None:
    options = P_CEM | {"generations": 5, "replay_size": 60, "rl_population": 4}
    expected = alone(tmp_path / "alone", **options)
    run = here(tmp_path / "ray", lambda row: False, workers=2, **options)
    assert bits(run.path) == expected


def test_forgotten_rows_give_their_memory_back_and_others_stay() -> None:
    rows = SharedRows.create(None, 7)
    rows.first(60_000)[:] = 1.0
    held = os.fstat(rows.descriptor).st_blocks
    rows.forget(0, 50_000)
    assert os.fstat(rows.descriptor).st_blocks < held / 3
    assert (rows.first(60_000)[50_000:] == 1.0).all()
    rows.close()


@pytest.mark.parametrize(
    ("algo", "options", "said"),
    [
        ("td3", {"address": "127.0.0.1:6379"}, "address is given, and the engine is local; add --engine ray"),
        ("cem-rl", {"engine": "ray", "workers": 0}, "a Ray engine needs at least one"),
        ("td3", {"engine": "ray", "device": "cuda:1"}, "Ray chooses the GPU: use --device cuda, or cpu"),
        ("acem-rl", {"engine": "ray", "device": "cuda", "deterministic": True}, "add --gpus-per-node 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(algo: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        configure("Pendulum-v1", options, algo=algo)


def test_a_gpu_that_no_node_has_is_refused_before_anything_is_written(two_nodes: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no node of the cluster offers a GPU; use --device cpu"):
        esker.train(ENV, run_dir=str(tmp_path / "run"), engine="ray", device="cuda", **(SMALL | AES))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("offered", "taken", "critic"), [(1.0, 0.5, 0.5), (2.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, None)]
)
def test_the_actors_leave_a_part_of_a_gpu_to_the_critic(
    monkeypatch: pytest.MonkeyPatch, offered: float, taken: float, critic: float | None
) -> None:
    class FakeRay:
        @staticmethod
        def nodes() -> list[dict[str, Any]]:
            return [{"NodeID": "a", "Alive": True, "Resources": {"GPU": offered}}]

        @classmethod
        def get_runtime_context(cls) -> Any:
            return SimpleNamespace(get_node_id=lambda: "a")

    for module in (connect, demand):
        monkeypatch.setattr(module, "import_ray", lambda: FakeRay)
    config, workers = AESRLConfig(device="cuda", gpus_per_node=taken), Workers(2, critic=True)
    if critic is None:
        with pytest.raises(UsageError, match="leave none for the critic"):
            connect.check_learner(config, workers)
    else:
        connect.check_learner(config, workers)
        assert demand.critic_demand(config).gpus_per_node == critic


def test_a_folder_without_its_replay_is_not_resumed(tmp_path: Path) -> None:
    alone(tmp_path / "run", generations=1, **P_CEM)
    (tmp_path / "run" / "replay").unlink()
    with pytest.raises(UsageError, match="replay' is missing or cut short, and a resume needs it"):
        esker.resume(tmp_path / "run", generations=2, workers=0)


# The long ones


@pytest.mark.faults
@pytest.mark.parametrize("algo", [CEM, P_CEM], ids=["cem-rl", "p-cem-rl"])
def test_a_killed_coordinator_continues_from_the_last_snapshot(two_nodes: Any, tmp_path: Path, algo: dict[str, Any]) -> None:
    options = algo | {"generations": 8, "workers": 2}
    expected = alone(tmp_path / "alone", **options)
    training = Hybrid(tmp_path / f"killed-{algo['algo']}", ENV, **options)
    for _ in range(2):
        training.reach(len(training.rows) + 2)
        os.kill(training.pid(), signal.SIGKILL)
    assert training.finish(180) == expected
    assert any("died and was restarted" in text for text in training.notes)


@pytest.mark.faults
def test_a_killed_raylet_changes_no_bit(two_nodes: Any, tmp_path: Path) -> None:
    options = P_CEM | {"generations": 8, "workers": 2}
    expected = alone(tmp_path / "alone", **options)
    training = Hybrid(tmp_path / "raylet", ENV, **options)
    training.reach(2)
    os.kill(two_nodes.raylet(list(two_nodes.cluster.worker_nodes)[-1]), signal.SIGKILL)
    assert training.finish() == expected


@pytest.mark.faults
def test_a_node_that_joins_is_used_within_twenty_seconds(two_nodes: Any, tmp_path: Path, pools: list[RayPool]) -> None:
    joined: list[float] = []

    def see(row: dict[str, Any]) -> bool:
        if not joined and len(pools[0].nodes) == 2:
            two_nodes.add()
            joined.append(time.monotonic())
        return bool(joined) and (len(pools[0].nodes) == 3 or time.monotonic() > joined[0] + 30)

    here(tmp_path / "run", see, workers=3, wall_time=120.0, **AES)
    assert len(pools[0].nodes) == 3
    assert time.monotonic() - joined[0] < 20


@pytest.mark.faults
def test_the_critic_of_a_gpu_goes_to_a_node_that_offers_one(
    two_nodes: Any, tmp_path: Path, pools: list[RayPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    node = two_nodes.add(cpus=0, num_gpus=1)
    wanted = connect.critic_demand(AESRLConfig(device="cuda"))
    monkeypatch.setattr(hybrid_setup, "critic_demand", lambda config: wanted)  # its node only claims to have a GPU
    found: list[str] = []

    def see(row: dict[str, Any]) -> bool:
        found[:] = [critic.id for critic in pools[0].critic_nodes]
        return row["critic_updates"] > 0

    run = here(tmp_path / "run", see, workers=2, wall_time=60.0, **AES)
    assert run.history[-1]["critic_updates"] > 0
    assert found == [node.node_id]
    assert ray.get_runtime_context().get_node_id() != node.node_id


@pytest.mark.faults
def test_stop_interrupts_training_in_the_loop_and_resume_ends_with_the_same_bits(two_nodes: Any, tmp_path: Path) -> None:
    from esker.cluster import viewer

    options = {"algo": "td3", "generation_steps": 40, "generations": 12, "workers": 1}
    expected = alone(tmp_path / "alone", **options)
    training = Hybrid(tmp_path / "stopped", ENV, **options)
    training.reach(2)
    assert {run.name: run.algo for run in viewer.summaries()}["stopped"] == "td3"
    began = time.monotonic()
    assert viewer.stop(training.coordinator, "stopped").kind == "interrupted"
    assert time.monotonic() - began < 10
    with pytest.raises(KeyboardInterrupt):
        training.finish()
    esker.resume(training.path)
    assert bits(training.path) == expected


@pytest.mark.faults
def test_after_a_kill_of_everything_resume_ends_with_the_same_bits(tmp_path: Path) -> None:
    options = P_CEM | {"generations": 6, "workers": 2}
    expected = alone(tmp_path / "alone", **options)
    path = tmp_path / "run"
    code = f"import esker; esker.train({ENV!r}, engine='ray', run_dir={str(path)!r}, **{SMALL | options!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, start_new_session=True)
    wait_for(lambda: (path / "checkpoints" / "000002").exists() or process.poll() is not None, within=90)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    esker.resume(path, engine="local", workers=0, quiet=True)
    assert bits(path) == expected


@pytest.mark.faults
def test_ctrl_c_with_a_local_ray_saves_and_names_the_resume_command(tmp_path: Path, cli: Callable[..., Any]) -> None:
    small = "--hidden 8 --batch-size 8 --initial-steps 40 --results-per-generation 3 --critic-chunk 20 --workers 2"
    flags = ["--algo", "aes-rl", "--mean-update-param", "5", "--run-dir", "r", *small.split()]
    process = subprocess.Popen(
        [sys.executable, "-m", "esker", "train", "hybrid_worlds:Reach", "--engine", "ray", *flags],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: (tmp_path / "r" / "checkpoints" / "000002").exists() or process.poll() is not None, within=90)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1] == "esker: interrupted; continue with: esker resume r"
    done = cli("resume", "r", "--generations", "4", "--engine", "local")
    assert (done.returncode, "resuming at generation" in done.stdout) == (0, True)
    assert cli("eval", "r", "--episodes", "2", "--workers", "0").returncode == 0
