"""Batched rewards: the members they are given, chunks, and the same result as one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import esker

FAST = {"noise": "counter", "quiet": True, "population": 10}
X = torch.linspace(-1, 1, 12).reshape(4, 3)


def test_batched_and_one_by_one_agree_on_exact_functions() -> None:
    one, many = torch.ones(6), torch.ones(6)

    def first(x: torch.Tensor) -> torch.Tensor:
        return -(x[..., 0].abs() + x[..., 1].abs())

    esker.Evolution(one, first, workers=0, lr=0.1, final="last", **FAST).run(5)
    for size in (None, 1, 3, 4):
        many = torch.ones(6)
        esker.Evolution(many, reward_batch=first, members_per_batch=size, lr=0.1, final="last", **FAST).run(5)
        assert torch.equal(one, many)


def test_a_module_is_given_as_stacked_parameters_and_as_a_function() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    shapes = []

    def reward_batch(members):  # type: ignore[no-untyped-def]
        outputs = members(X)
        shapes.append((tuple(members["0.weight"].shape), tuple(outputs.shape)))
        for i in range(len(outputs)):
            one = torch.func.functional_call(model, {name: p[i] for name, p in members.items()}, X)
            assert torch.allclose(one, outputs[i], atol=1e-5)
        return -(outputs**2).mean((1, 2))

    before = float((model(X) ** 2).mean())
    esker.Evolution(model, reward_batch=reward_batch, members_per_batch=4, lr=0.1, **FAST).run(4)
    assert shapes[:4] == [((1, 4, 3), (1, 4, 2)), ((4, 4, 3), (4, 4, 2)), ((4, 4, 3), (4, 4, 2)), ((2, 4, 3), (2, 4, 2))]
    assert float((model(X) ** 2).mean()) < before


def test_a_noisy_batched_reward_is_averaged_and_repeats() -> None:
    counts, results = [], []

    def noisy(x: torch.Tensor) -> torch.Tensor:
        counts.append(len(x))
        return -(x**2).sum(1) + torch.randn(len(x))

    for _ in range(2):
        x = torch.ones(3)
        options = {"evaluations_per_member": 3, "center_evaluations": 2, "members_per_batch": 12}
        esker.Evolution(x, reward_batch=noisy, lr=0.1, **options, **FAST).run(2)
        results.append(x)
    assert torch.equal(*results)
    assert counts[:4] == [2, 12, 12, 6]


def test_a_batched_run_resumes_to_the_same_bits(tmp_path: Path) -> None:
    whole, x = torch.ones(5), torch.ones(5)
    options = {**FAST, "lr": 0.1, "final": "last"}

    def reward_batch(x: torch.Tensor) -> torch.Tensor:
        return -(x**2).sum(1)

    esker.Evolution(whole, reward_batch=reward_batch, **options).run(6)
    esker.Evolution(x, reward_batch=reward_batch, run_dir=str(tmp_path / "run"), **options).run(2)
    again = esker.Evolution.resume(tmp_path / "run", torch.zeros(5), reward_batch=reward_batch)
    assert torch.equal(again.run(4), whole)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: None, "reward_batch returned None"),
        (lambda x: x.sum(), "reward_batch returned shape \\(\\) for 1 members; expected \\(1,\\)"),
        (lambda x: torch.zeros(len(x) + 1), "reward_batch returned shape \\(2,\\) for 1 members"),
        (lambda x: torch.full((len(x),), torch.nan), "reward_batch returned nan at place 0"),
        (lambda x: torch.zeros(len(x), device="meta"), "returned a tensor on meta; expected it on cpu"),
        (lambda x: "many", "reward_batch returned a str"),
        (lambda x: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_wrong_results_of_a_batched_reward_are_named(answer, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(esker.RunError, match=message):
        esker.Evolution(torch.ones(3), reward_batch=answer, **FAST).run(1)


def test_on_error_worst_counts_members_that_are_not_finite() -> None:
    evolution = esker.Evolution(torch.zeros(2), reward_batch=lambda x: torch.log(x[:, 0]), on_error="worst", **FAST)
    evolution.run(1)
    assert evolution.history[0]["failed_members"] == 5
    assert evolution.history[0]["center_return"] is None
