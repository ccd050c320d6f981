"""esker.minimize: black-box functions with any strategy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import esker


def sphere(rows: torch.Tensor) -> torch.Tensor:
    return (rows**2).sum(-1)


def rastrigin(rows: torch.Tensor) -> torch.Tensor:
    return (10 + rows**2 - 10 * torch.cos(2 * torch.pi * rows)).sum(-1)


@pytest.mark.parametrize("strategy", ["cma", "sep-cma", "snes"])
def test_a_sphere_is_minimised_to_its_target(strategy: str) -> None:
    found = esker.minimize(sphere, np.ones(5), strategy, sigma=0.5, target=1e-6)
    assert found.value == float(sphere(found.x)) <= 1e-6
    assert found.reason == "reached 1e-06"
    assert found.evaluations < 5000


@pytest.mark.parametrize("strategy", ["pgpe", "openai-es"])
def test_strategies_of_gradients_take_their_options(strategy: str) -> None:
    found = esker.minimize(sphere, np.ones(5), strategy, population=20, sigma=0.1, optimizer="clipup", lr=0.05, target=0.01)
    assert found.value <= 0.01


def test_it_ends_within_its_evaluations() -> None:
    found = esker.minimize(sphere, np.ones(5), population=8, evaluations=100)
    assert (found.evaluations, found.reason) == (96, "100 evaluations")


def test_a_function_of_one_vector_gives_the_same_as_a_batched_one() -> None:
    one, many = (esker.minimize(sphere, np.ones(3), batched=batched, evaluations=200) for batched in (False, True))
    assert torch.equal(one.strategy.center, many.strategy.center)


def test_a_stopped_run_ends_and_restarts_continue() -> None:
    start = np.full(3, 4.0)
    stuck = esker.minimize(rastrigin, start, sigma=0.5, seed=1, target=1e-3)
    again = esker.minimize(rastrigin, start, sigma=0.5, seed=1, target=1e-3, restarts=6, evaluations=60_000)
    assert stuck.value > 0.9
    assert stuck.reason.startswith(("fitness has not", "sigma"))
    assert again.value <= 1e-3


def test_an_infinite_value_is_the_worst() -> None:
    def half(rows: torch.Tensor) -> torch.Tensor:
        return torch.where(rows[:, 0] > 0, sphere(rows), torch.inf)

    found = esker.minimize(half, np.ones(3), sigma=0.5, target=1e-4)
    assert found.value <= 1e-4


def test_a_single_value_for_many_rows_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"returned shape \(\) for 7 rows; .*batched=False"):
        esker.minimize(lambda rows: (rows**2).sum(), np.ones(3))


def test_an_unknown_strategy_is_refused_by_name() -> None:
    with pytest.raises(esker.UsageError, match="cmaa"):
        esker.minimize(sphere, np.ones(3), "cmaa")


@pytest.mark.parametrize(
    ("batched", "value", "message"),
    [
        (False, None, "the function returned a NoneType; expected one number"),
        (False, 2j, "the function returned a complex; expected one number"),
        (False, torch.ones(2), "the function returned a Tensor; expected one number"),
        (True, "high", "the function returned a str; expected 7 numbers"),
        (True, np.full(7, 1j), "the function returned a ndarray; expected 7 numbers"),
        (True, [1.0, 1.0, np.nan, 1.0, 1.0, 1.0, 1.0], "the function returned NaN for row 2"),
    ],
)
def test_what_is_no_value_is_refused_as_the_functions(batched: bool, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        esker.minimize(lambda rows: value, np.ones(3), batched=batched)
