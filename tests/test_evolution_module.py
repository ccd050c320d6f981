"""EvolutionModule: the seed's own script runs with the import changed, and does what its README says."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import esker

SNIPPET = '''
import copy
from functools import partial

from esker import EvolutionModule


def get_reward(model, weights):
    """
    This function runs your model and generates a reward
    """
    cloned_model = copy.deepcopy(model)
    for i, param in enumerate(cloned_model.parameters()):
        try:
            param.data = weights[i]
        except:
            param.data = weights[i].data

    # run environment and return reward as an integer or float
    return 100


model = generate_pytorch_model()
# EvolutionModule runs the population in a ThreadPool, so
# if you need to inject other arguments, you can do that
# using the partial tool
partial_func = partial(get_reward, model=model)
mother_parameters = list(model.parameters())

es = EvolutionModule(
    mother_parameters, partial_func, population_size=100,
    sigma=0.1, learning_rate=0.001,
    reward_goal=200, consecutive_goal_stopping=20,
    threadcount=10, cuda=cuda, render_test=True
)
'''


def module(reward: Any, parameters: list[torch.Tensor] | None = None, **options: Any) -> esker.EvolutionModule:
    chosen = {"population_size": 4, "threadcount": 1, "noise": "counter", "quiet": True} | options
    return esker.EvolutionModule([torch.ones(2)] if parameters is None else parameters, reward, **chosen)


@pytest.mark.parametrize("cuda", [False, True])
def test_the_snippet_of_the_seed_runs_verbatim(cuda: bool, capsys: pytest.CaptureFixture[str]) -> None:
    if cuda and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    names: dict[str, Any] = {"generate_pytorch_model": lambda: nn.Linear(3, 2), "cuda": cuda}
    exec(SNIPPET, names)
    weights = names["es"].run(2, print_step=1)
    assert [tuple(w.shape) for w in weights] == [(2, 3), (2,)]
    out = capsys.readouterr().out
    assert "render_test: the reward has no argument render, so it is not passed" in out
    assert ("cuda: no GPU can be used here, so members are evaluated on the CPU" in out) is cuda
    assert out.count("test 100") == 2


def test_render_is_passed_to_a_reward_that_takes_it_and_only_at_tests() -> None:
    seen: list[bool | None] = []

    def reward(weights: list[torch.Tensor], render: bool | None = None) -> float:
        seen.append(render)
        return float(weights[0].sum())

    module(reward, render_test=True).run(4, print_step=2)
    assert seen.count(True) == 2
    assert set(seen) == {None, True}


@pytest.mark.parametrize("half", [{"reward_goal": 0.0}, {"consecutive_goal_stopping": 1}])
def test_half_a_goal_stops_nothing_and_is_reported(half: dict[str, Any]) -> None:
    es = module(lambda weights: 1.0, **half)
    es.run(3, print_step=1)
    assert es.evolution.iteration == 3
    assert any("without" in notice for notice in es.evolution.notices)


def test_the_goal_is_counted_over_tests_of_the_weights_after_their_update() -> None:
    es = module(lambda weights: 1.0, reward_goal=1.0, consecutive_goal_stopping=3)
    es.run(50, print_step=4)
    assert es.evolution.iteration == 12
    assert es.evolution.outcome is not None
    assert es.evolution.outcome.goal_reached
    assert es.evolution.outcome.reason == "goal reached: reward ≥ 1, in 3 tests in a row"


def test_a_test_below_the_goal_starts_the_count_again() -> None:
    calls = iter([2.0, 0.0, 2.0, 2.0, 2.0])

    def reward(weights: list[torch.Tensor], render: bool = False) -> float:
        return next(calls) if render else 0.5

    es = module(reward, reward_goal=1.0, consecutive_goal_stopping=2, render_test=True)
    es.run(50, print_step=1)
    assert es.evolution.iteration == 4


def test_decay_may_be_above_one() -> None:
    es = module(lambda weights: float(weights[0].sum()), decay=1.5, sigma_decay=1.25)
    es.run(2)
    assert [row["lr"] for row in es.evolution.history] == pytest.approx([0.001, 0.0015])
    assert [row["sigma"] for row in es.evolution.history] == pytest.approx([0.1, 0.125])


def test_saved_weights_are_read_by_pickle(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    path = tmp_path / "weights.p"
    es = module(lambda weights: float(weights[0].sum()), list(model.parameters()), save_path=path, learning_rate=0.1)
    es.run(3, print_step=2)
    with path.open("rb") as file:
        weights = pickle.load(file)
    assert isinstance(weights, list)
    assert all(torch.equal(saved, now) for saved, now in zip(weights, model.parameters(), strict=True))


def test_an_error_shows_names_and_not_the_model() -> None:
    def reward(model: nn.Module, weights: Any, extra: Any) -> float:
        return 0.0

    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    with pytest.raises(esker.UsageError, match="extra") as caught:
        module(partial(reward, model=model), list(model.parameters()))
    assert "Linear" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_evolution_itself_refuses_a_missing_gpu() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(esker.UsageError, match="device 'cuda' cannot be used here"):
        esker.Evolution(torch.ones(2), lambda x: 1.0, device="cuda")
