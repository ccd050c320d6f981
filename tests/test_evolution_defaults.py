"""What esker.Evolution does unless told otherwise: it moves, by the defaults of training, and rewards have no gradients."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn

import esker
from esker.config.evolution import EvolutionConfig
from esker.config.legacy import stored
from esker.config.options import ESConfig

FAST: dict[str, Any] = {"noise": "counter", "quiet": True, "population": 4}


def test_a_sphere_in_20_dimensions_is_climbed_at_the_defaults() -> None:
    x = torch.ones(20)
    esker.Evolution(x, reward_batch=lambda x: -(x * x).sum(-1), quiet=True, noise="counter").run(200, None)
    assert float((x * x).sum()) < 0.02  # from 20; a thousandth of the way is left


@pytest.mark.parametrize("name", ["population", "sigma", "lr", "optimizer", "shaping", "antithetic", "weight_decay"])
def test_the_same_algorithm_has_the_same_defaults_everywhere(name: str) -> None:
    alone = inspect.signature(esker.OpenAIES).parameters[name].default
    assert getattr(EvolutionConfig, name) == getattr(ESConfig, name) == alone


def grad_mode(*arguments: Any, **options: Any) -> float:
    return float(torch.is_grad_enabled())


def grad_modes(members: Any) -> torch.Tensor:
    count = len(next(iter(members.values()))) if isinstance(members, dict) else len(members(torch.ones(1, 2)))
    return torch.full((count,), float(torch.is_grad_enabled()))


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("form", ["reward", "threads", "batched", "low-rank"])
def test_rewards_run_without_gradients_unless_asked(form: str, gradients: bool) -> None:
    options = {**FAST, **({"gradients": True} if gradients else {})}
    forms: dict[str, Any] = {
        "reward": {"reward": grad_mode, "workers": 0, "test_kwargs": {"render": True}},
        "threads": {"reward": grad_mode, "workers": 1, "executor": "threads"},
        "batched": {"reward_batch": grad_modes},
        "low-rank": {"reward_batch": grad_modes, "noise": "low-rank"},
    }
    evolution = esker.Evolution(nn.Linear(2, 1), **{**options, **forms[form]})
    evolution.run(1, report_every=1)
    assert evolution.history[0]["return_max"] == evolution.history[0]["center_return"] == float(gradients)
    if form == "reward":
        assert evolution.tested == float(gradients)
    assert torch.is_grad_enabled()


def test_a_reward_that_asks_for_gradients_is_refused_with_how_to_get_them() -> None:
    def steps(model: nn.Module) -> float:
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        return float(loss.detach())

    with pytest.raises(esker.RunError, match="add gradients=True"):
        esker.Evolution(nn.Linear(2, 1), steps, workers=0, **FAST).run(1)
    esker.Evolution(nn.Linear(2, 1), steps, workers=0, gradients=True, **FAST).run(1)


def test_a_run_of_an_earlier_version_keeps_its_gradients() -> None:
    assert stored({"algo": "function", "sigma": 0.1}) == {"algo": "function", "sigma": 0.1, "gradients": True}
    assert "gradients" not in stored({"algo": "es"})
