"""Workers of a user's own over HTTP: slices by speed, joining and leaving, kills, restarts, tokens."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import HERE

import esker
from esker.engines.plan import Plan
from esker.engines.remote.assignments import Assignments

TOKEN = "a token of the tests"
WORKER = """
import sys, time
import numpy as np
import esker

address, pause = sys.argv[1], float(sys.argv[2])

def score(row):
    time.sleep(pause)
    return -float(((row - 1) ** 2).sum())

print(esker.Worker(address, "sphere").run(score), flush=True)
"""
COORDINATOR = """
import os, sys
import numpy as np
import torch
import esker

port, path, generations = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
es = esker.OpenAIES(np.zeros(5), population=12, sigma=0.1, lr=0.1, seed=3, optimizer="sgd")
if os.path.exists(path):
    es.load_state_dict(torch.load(path))
with esker.WorkServer("sphere", port=port) as server:
    print(server.address, flush=True)
    while es.generation < generations:
        es.tell(server.evaluate(es))
        torch.save(es.state_dict(), path + ".new")
        os.replace(path + ".new", path)
        print(es.generation, flush=True)
"""


def sphere(row: np.ndarray) -> float:
    return -float(((row - 1) ** 2).sum())


def strategy(**options: Any) -> esker.OpenAIES:
    return esker.OpenAIES(np.zeros(5), **({"population": 12, "sigma": 0.1, "lr": 0.1, "seed": 3} | options))


def alone(generations: int, **options: Any) -> bytes:
    es = strategy(**options)
    for _ in range(generations):
        es.tell([sphere(row) for row in es.ask().parameters().numpy()])
    return es.center.numpy().tobytes()


@pytest.fixture
def server() -> Iterator[esker.WorkServer]:
    with esker.WorkServer("sphere", token=TOKEN, silent_after=2.0) as made:
        yield made


def process(code: str, *arguments: object) -> subprocess.Popen[str]:
    environment = os.environ | {"ESKER_TOKEN": TOKEN, "PYTHONPATH": str(HERE.parent)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


# Slices


def test_slices_follow_measured_speed_and_a_new_worker_is_measured_by_one_item() -> None:
    board = Assignments(silent_after=10)
    board.begin(Plan(100))
    assert board.take("fast", 0.0) == [0]
    assert board.take("slow", 0.0) == [1]
    board.done("fast", [0], 1.0)
    board.done("slow", [1], 4.0)
    assert len(board.take("fast", 4.0)) == 40  # half of 100 unfinished, of which four fifths
    assert len(board.take("slow", 4.0)) == 10
    assert len(board.take("new", 4.0)) == 1


def test_a_silent_worker_costs_only_its_items() -> None:
    board, plan = Assignments(silent_after=10), Plan(3)
    board.begin(plan)
    assert (board.take("a", 0.0), board.take("b", 5.0)) == ([0], [1])
    assert board.expire(11.0) == ["a"]
    assert board.take("b", 11.0) == [0]  # what was lost comes first


def test_an_idle_worker_takes_over_what_the_slowest_still_holds() -> None:
    board, plan = Assignments(silent_after=100), Plan(9)
    board.begin(plan)
    first = board.take("a", 0.0)
    board.done("a", first, 1.0)
    held = [board.take("a", 1.0) for _ in range(5)]
    rest = [item for items in held for item in items]
    assert plan.waiting == 0
    assert board.take("b", 2.0) == rest[len(rest) // 2 :]


# A run


def test_workers_of_unequal_speed_give_the_bits_of_one_process(server: esker.WorkServer) -> None:
    def work(pause: float) -> None:
        esker.Worker(server.address, "sphere", TOKEN).run(lambda row: time.sleep(pause) or sphere(row))

    threads = [threading.Thread(target=work, args=(pause,), daemon=True) for pause in (0.0, 0.002, 0.01)]
    for thread in threads:
        thread.start()
    es = strategy()
    for _ in range(5):
        es.tell(server.evaluate(es))
    assert es.center.numpy().tobytes() == alone(5)
    server.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_rows_of_another_noise_are_fetched(server: esker.WorkServer) -> None:
    from esker.noise.table import NoiseTable, TableNoise

    table = NoiseTable.create(7, 1000)
    threading.Thread(target=lambda: esker.Worker(server.address, "sphere", TOKEN).run(sphere), daemon=True).start()
    es = strategy(noise=TableNoise(table, 7, 5))
    es.tell(server.evaluate(es))
    assert es.center.numpy().tobytes() == alone(1, noise=TableNoise(table, 7, 5))
    table.close()


def test_processes_that_are_killed_leave_and_come_back_change_no_bit(server: esker.WorkServer) -> None:
    slow = process(WORKER, server.address, 0.05)
    es = strategy()
    es.tell(server.evaluate(es))
    slow.kill()  # in the middle of its next slice, or waiting for one
    slow.wait()
    helper = process(WORKER, server.address, 0.0)
    for _ in range(4):
        es.tell(server.evaluate(es))
    assert es.center.numpy().tobytes() == alone(5)
    server.close()
    out, _ = helper.communicate(timeout=20)
    assert (helper.returncode, int(out) >= 36) == (0, True)


def test_workers_survive_a_killed_coordinator_and_the_run_ends_with_the_same_bits(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = process(COORDINATOR, 0, state, 30)
    assert first.stdout is not None
    address = first.stdout.readline().strip()
    workers = [process(WORKER, address, pause) for pause in (0.01, 0.03)]
    while int(first.stdout.readline()) < 3:
        pass
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = process(COORDINATOR, address.rpartition(":")[2], state, 8)
    assert second.wait(60) == 0
    assert [int(worker.communicate(timeout=30)[0]) > 0 for worker in workers] == [True, True]
    assert torch.load(state)["center"].numpy().tobytes() == alone(8, optimizer="sgd")


def test_a_worker_that_leaves_gives_its_slice_back_at_once(server: esker.WorkServer) -> None:
    es, fitness = strategy(), []
    threading.Thread(target=lambda: fitness.append(server.evaluate(es)), daemon=True).start()
    leaver = esker.Worker(server.address, "sphere", TOKEN)
    next(iter(leaver))
    leaver.close()
    assert server.workers == []
    threading.Thread(target=lambda: esker.Worker(server.address, "sphere", TOKEN).run(sphere), daemon=True).start()
    for _ in range(500):
        if fitness:
            break
        time.sleep(0.02)
    assert fitness[0].tolist() == [sphere(row) for row in es.ask().parameters().numpy()]


def test_a_worker_that_takes_long_over_one_member_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esker.engines.remote.worker.ALIVE_EVERY", 0.05)
    es, calls = strategy(population=2), []
    with esker.WorkServer("sphere", token=TOKEN, silent_after=0.4) as server:

        def score(row: np.ndarray) -> float:
            calls.append(1)
            time.sleep(1.0)
            return sphere(row)

        threading.Thread(target=esker.Worker(server.address, "sphere", TOKEN).run, args=(score,), daemon=True).start()
        server.evaluate(es)
    assert len(calls) == 2  # each member once


def test_a_late_report_does_not_count(server: esker.WorkServer) -> None:
    es = strategy(population=2)
    waiting = threading.Thread(target=lambda: server.evaluate(es), daemon=True)
    waiting.start()
    late = esker.Worker(server.address, "sphere", TOKEN)
    work = next(iter(late))
    threading.Thread(target=lambda: esker.Worker(server.address, "sphere", TOKEN).run(sphere), daemon=True).start()
    waiting.join(20)
    assert late.report(work, [0.0] * len(work)) is False


def test_an_evolution_has_its_members_evaluated_by_workers_and_resumes(server: esker.WorkServer, tmp_path: Path) -> None:
    options: dict[str, Any] = {"population": 8, "lr": 0.1, "quiet": True, "final": "last", "evaluations_per_member": 2}
    here, there, seeds = torch.zeros(3), torch.zeros(3), []

    def noisy(row: np.ndarray, seed: int) -> float:
        return sphere(row) + np.random.default_rng(seed).normal()

    def work() -> None:
        worker = esker.Worker(server.address, "sphere", TOKEN)
        for work in worker:
            seeds.extend(work.seeds)
            worker.report(work, [noisy(row, seed) for row, seed in zip(work.rows, work.seeds, strict=True)])

    esker.Evolution(here, lambda x, seed: noisy(x.numpy(), seed), workers=0, noise="counter", **options).run(4)
    threading.Thread(target=work, daemon=True).start()
    esker.Evolution(there, server=server, run_dir=str(tmp_path / "run"), **options).run(2)
    resumed = esker.Evolution.resume(tmp_path / "run", there, server=server)
    resumed.run(2)
    assert torch.equal(here, there)
    assert len(resumed.history) == 4
    assert len(seeds) >= 4 * (1 + 8 * 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reward": sphere}, "reward has no effect with server"),
        ({"workers": 2}, "workers has no effect with server"),
        ({"noise": "table"}, "use noise='counter'"),
    ],
)
def test_options_without_use_beside_a_server_are_refused(server: esker.WorkServer, options: Any, said: str) -> None:
    with pytest.raises(esker.UsageError, match=said):
        esker.Evolution(torch.zeros(2), server=server, **options)


# What is refused


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_stops_the_run_and_names_the_member(server: esker.WorkServer, score: float) -> None:
    threading.Thread(
        target=lambda: esker.Worker(server.address, "sphere", TOKEN).run(lambda row: score), daemon=True
    ).start()
    with pytest.raises(esker.RunError, match=r"member \d+: a worker reported (nan|inf); expected a finite number"):
        server.evaluate(strategy())


def post(address: str, path: str, body: bytes, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address, timeout=10)
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize(
    ("path", "body", "token", "status"),
    [
        ("/work", b'{"run": "sphere", "worker": "w"}', "another", 401),
        ("/work", b"not json", TOKEN, 400),
        ("/work", b'{"run": "sphere"}', TOKEN, 400),
        ("/work", b'{"run": "other", "worker": "w"}', TOKEN, 409),
        ("/nothing", b'{"run": "sphere"}', TOKEN, 404),
        ("/report", b'{"run": "sphere", "worker": "w", "items": [1], "scores": []}', TOKEN, 400),
        ("/rows", b'{"run": "sphere", "items": [0]}', TOKEN, 410),
    ],
)
def test_wrong_requests_are_refused_with_a_reason(
    server: esker.WorkServer, path: str, body: bytes, token: str, status: int
) -> None:
    found, text = post(server.address, path, body, Authorization=f"Bearer {token}")
    assert found == status
    assert json.loads(text)["error"]


def test_a_wrong_token_run_or_address_is_reported_in_one_line(server: esker.WorkServer) -> None:
    with pytest.raises(esker.UsageError, match="the token is missing or wrong"):
        esker.Worker(server.address, "sphere", "another").run(sphere)
    with pytest.raises(esker.UsageError, match="this is run 'sphere', not 'cheetah'"):
        esker.Worker(server.address, "cheetah", TOKEN).run(sphere)
    with pytest.raises(esker.UsageError, match="expected HOST:PORT"):
        esker.Worker("nowhere", "sphere", TOKEN)
    with pytest.raises(esker.RunError, match=r"no coordinator at 127.0.0.1:9 for 0 s"):
        esker.Worker("127.0.0.1:9", "sphere", TOKEN, patience=0).run(sphere)
    with pytest.raises(esker.UsageError, match="cannot listen at"):
        esker.WorkServer("sphere", port=int(server.address.rpartition(":")[2]), token=TOKEN)


def test_the_token_is_kept_in_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ESKER_TOKEN", raising=False)
    with pytest.raises(esker.UsageError, match="no token"):
        esker.Worker("127.0.0.1:9", "sphere")
    with esker.WorkServer("sphere") as made:
        path = tmp_path / "esker" / "worker-token"
        assert (path.stat().st_mode & 0o777, path.read_text()) == (0o600, made.token)
        assert made.address.startswith("127.0.0.1:")
    path.chmod(0o644)
    with pytest.raises(esker.UsageError, match="can be read by others"):
        esker.WorkServer("sphere")
