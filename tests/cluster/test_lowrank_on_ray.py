"""Low-rank populations on a Ray cluster: the bits of one process for any number of engines, and a killed one."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import esker
from esker.functions.lowrank.fleet import LowRankFleet

OPTIONS: dict[str, Any] = {
    "population": 16, "sigma": 0.1, "lr": 0.05, "noise": "low-rank", "members_per_batch": 4, "quiet": True, "final": "last",
    "anchor_decay": 0.5, "vectors": "keep",
}  # fmt: skip
INPUTS = torch.randn(8, 6, generator=torch.Generator().manual_seed(1))


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))


def reward(members: Any) -> torch.Tensor:
    return -((members(INPUTS) - INPUTS[:, :3].cumsum(1)) ** 2).mean((1, 2))


def evolved(iterations: int, **options: Any) -> bytes:
    network = model()
    esker.Evolution(network, reward_batch=reward, **OPTIONS | options).run(iterations)
    return nn.utils.parameters_to_vector(network.parameters()).detach().numpy().tobytes()


@pytest.fixture
def fleets(monkeypatch: pytest.MonkeyPatch) -> list[LowRankFleet]:
    """The fleets that are opened."""
    opened: list[LowRankFleet] = []

    def open_one(*arguments: Any) -> LowRankFleet:
        opened.append(LowRankFleet(*arguments))
        return opened[-1]

    monkeypatch.setattr("esker.functions.engines.LowRankFleet", open_one)
    return opened


def test_one_two_and_fractional_engines_give_the_bits_of_this_process(two_nodes: Any, fleets: list[LowRankFleet]) -> None:
    there = {"engine": "ray", "address": two_nodes.address}
    expected = evolved(4)
    assert evolved(4, **there, workers=1) == expected
    assert evolved(4, **there) == expected  # one on each node
    assert evolved(4, **there, workers=3, cpus_per_worker=0.5) == expected
    assert [fleet.members_per_batch for fleet in fleets] == [4, 4, 4]


def test_a_killed_engine_costs_its_chunk_and_the_bits_stay(
    two_nodes: Any, fleets: list[LowRankFleet], tmp_path: Path
) -> None:
    killed: list[int] = []

    def seen(row: dict[str, Any]) -> None:
        if row["generation"] == 1:
            killed.append(fleets[0].nodes[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    options = {"engine": "ray", "address": two_nodes.address, "on_iteration": seen, "run_dir": str(tmp_path / "run")}
    assert evolved(5, **options) == evolved(5)
    assert killed
    network = model()
    run = esker.Evolution.resume(tmp_path / "run", network, reward_batch=reward)
    run.run(1)
    assert nn.utils.parameters_to_vector(network.parameters()).detach().numpy().tobytes() == evolved(6)


def test_a_reward_that_fails_on_an_engine_stops_the_run(two_nodes: Any) -> None:
    def broken(members: Any) -> torch.Tensor:
        raise ValueError("no such thing")

    with pytest.raises(esker.RunError, match="no such thing"):
        esker.Evolution(model(), reward_batch=broken, engine="ray", address=two_nodes.address, **OPTIONS).run(1)


@pytest.mark.faults
def test_a_language_model_evolves_on_engines_and_reports_held_out_prompts_here(two_nodes: Any) -> None:
    pytest.importorskip("transformers")
    from tiny_language import letters, tiny

    from esker.language import LanguageEvolution

    def run(**options: Any) -> Any:
        language = tiny()
        made = LanguageEvolution(
            language, ["1+2=", "a"], letters, held_out=["b", "(c"], evaluate_every=2, population=8, members_per_batch=4,
            sigma=0.1, lr=0.03, max_new_tokens=4, quiet=True, **options,
        )  # fmt: skip
        made.run(3)
        return made, [p.detach().clone() for p in language.model.parameters()]

    here, expected = run()
    there, found = run(engine="ray", address=two_nodes.address)
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    assert there.held_out == here.held_out
    assert there.task.tokens == here.task.tokens > 0
