"""What every strategy of a centre must do: move by fitness alone, resume exactly, refuse bad values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from esker import CMA, PGPE, SNES, OpenAIES, Restarts, SepCMA
from esker.noise.counter import CounterNoise
from esker.noise.lowrank import LowRankNoise
from esker.noise.table import NoiseTable, TableNoise
from esker.strategies import Strategy

D = 6
Make = Callable[..., Strategy]
MAKERS: dict[str, Make] = {
    "openai-es": partial(OpenAIES, population=8, optimizer="clipup"),
    "pgpe": partial(PGPE, population=8),
    "pgpe-adam": partial(PGPE, population=8, optimizer="adam", lr=0.05),
    "pgpe-decay": partial(PGPE, population=8, lr=0.05, max_speed=0.1, lr_decay=0.99),
    "snes": partial(SNES, population=8),
    "snes-antithetic": partial(SNES, population=8, antithetic=True),
    "sep-cma": partial(SepCMA, population=8),
    "cma": partial(CMA, population=8),
    "active-cma": partial(CMA, population=8, active=True),
}
DIAGONAL = ["pgpe", "snes", "sep-cma"]


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    return MAKERS[request.param]


def told(es: Strategy, generations: int, seed: int = 0) -> Strategy:
    rng = np.random.default_rng([seed, es.generation])
    for _ in range(generations):
        es.tell(rng.standard_normal(es.population))
    return es


def flat(state: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in state.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def test_equal_fitness_moves_nothing_but_the_generation(make: Make) -> None:
    es = make(np.ones(D))
    es.tell(np.full(8, 3.3))
    after = es.ask().parameters()
    assert es.generation == 1
    assert es.center.tolist() == [1.0] * D
    es.generation = 0
    assert torch.equal(es.ask().parameters(), make(np.ones(D)).ask().parameters())
    assert not torch.equal(es.ask().parameters(), after)


def test_a_restored_strategy_continues_bit_identically(make: Make) -> None:
    whole, resumed = told(make(np.ones(D)), 5), make(np.ones(D))
    resumed.load_state_dict(told(make(np.ones(D)), 5).state_dict())
    rng = np.random.default_rng(7)
    for fitness in rng.standard_normal((7, 8)):
        whole.tell(fitness)
        resumed.tell(fitness)
    assert resumed.center.numpy().tobytes() == whole.center.numpy().tobytes()
    assert resumed.ask().parameters().numpy().tobytes() == whole.ask().parameters().numpy().tobytes()


def test_a_state_is_a_copy_of_tensors_and_numbers(make: Make) -> None:
    es = told(make(np.ones(D)), 2)
    state = flat(es.state_dict())
    before = {name: value.clone() for name, value in state.items() if isinstance(value, torch.Tensor)}
    assert all(isinstance(value, torch.Tensor | int | float) for value in state.values())
    told(es, 3)
    assert all(torch.equal(state[name], value) for name, value in before.items())


def test_a_failed_member_counts_as_the_worst(make: Make) -> None:
    failed, worst = make(np.ones(D)), make(np.ones(D))
    failed.tell([5.0, 1.0, -np.inf, 4.0, 3.0, 2.0, 7.0, 6.0])
    worst.tell([5.0, 1.0, -9.0, 4.0, 3.0, 2.0, 7.0, 6.0])
    assert torch.equal(failed.center, worst.center)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_fitness_that_is_no_number_is_refused_and_nothing_moves(make: Make, bad: float) -> None:
    es = make(np.ones(D))
    with pytest.raises(ValueError, match=r"fitness\[2\] is"):
        es.tell([5.0, 1.0, bad, 4.0, 3.0, 2.0, 7.0, 6.0])
    assert es.generation == 0
    assert es.center.tolist() == [1.0] * D


def test_more_members_than_the_population_are_taken_and_fewer_refused(make: Make) -> None:
    es = make(np.ones(D))
    with pytest.raises(ValueError, match=r"fitness has shape \(6,\); expected one number for each of 8 members"):
        es.tell(np.arange(6.0))
    es.tell(np.arange(12.0))
    assert es.center.tolist() != [1.0] * D


def test_a_centre_of_another_size_is_refused(make: Make) -> None:
    with pytest.raises(ValueError, match="the state has 7 parameters; this strategy has 6"):
        make(np.ones(D)).load_state_dict(make(np.ones(7)).state_dict())


def test_a_slice_of_members_equals_those_rows_of_all(make: Make) -> None:
    es = told(make(np.ones(D)), 3)
    assert torch.equal(es.ask(slice(3, 7)).parameters(), es.ask().parameters()[3:7])


def test_a_sphere_is_descended(make: Make) -> None:
    es = make(np.full(D, 0.5), sigma=0.1)
    for _ in range(300):
        es.tell(-(es.ask().parameters() ** 2).sum(1))
    assert float((es.center**2).sum()) < 0.05 * D * 0.25


@pytest.mark.parametrize("name", [*DIAGONAL, "openai-es"])
@pytest.mark.parametrize("kind", ["table", "counter"])
def test_an_update_has_the_same_bits_on_1_2_and_4_threads(name: str, kind: str) -> None:
    d, threads, found = 70_001, torch.get_num_threads(), set()
    noise = TableNoise(NoiseTable.create(0, 4 * d), 0, d) if kind == "table" else CounterNoise(0, d)
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            found.add(told(MAKERS[name](np.ones(d), noise=noise), 3).center.numpy().tobytes())
    finally:
        torch.set_num_threads(threads)
    assert len(found) == 1


@pytest.mark.parametrize("name", ["cma", "active-cma"])
def test_a_full_covariance_has_the_same_bits_on_1_2_and_4_threads(name: str) -> None:
    threads, found = torch.get_num_threads(), set()
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            found.add(told(MAKERS[name](np.ones(300)), 20).ask().parameters().numpy().tobytes())
    finally:
        torch.set_num_threads(threads)
    assert len(found) == 1


@pytest.mark.parametrize("name", DIAGONAL)
def test_low_rank_noise_is_refused_where_each_parameter_has_its_scale(name: str) -> None:
    with pytest.raises(ValueError, match="use table or counter noise"):
        MAKERS[name](np.ones(D), noise=LowRankNoise(0, ((2, 3),)))


@pytest.mark.parametrize(
    ("strategy", "arguments", "message"),
    [
        (PGPE, {"population": 5}, "population is 5; expected an even number"),
        (PGPE, {"sigma": -1.0}, "sigma is -1.0; expected a number above 0"),
        (PGPE, {"sigma": [0.1, 0.2]}, r"sigma has shape \(2,\); expected one number, or one for each of 3"),
        (PGPE, {"lr": 0.0}, "lr is 0.0; expected a number above 0"),
        (PGPE, {"lr_decay": 0.0}, "lr_decay is 0.0; expected a number above 0"),
        (PGPE, {"stdev_lr": -0.1}, "stdev_lr is -0.1"),
        (PGPE, {"stdev_max_change": 2.0}, "stdev_max_change is 2.0; expected a share between 0 and 1"),
        (PGPE, {"optimizer": "adam", "max_speed": 0.1}, r"max_speed is 0.1; adam has none \(use clipup\)"),
        (PGPE, {"shaping": "rank"}, "shaping is 'rank'"),
        (SNES, {"stdev_lr": 0.0}, "stdev_lr is 0.0"),
        (SNES, {"population": 1}, "population is 1"),
        (SepCMA, {"sigma": 0.0}, "sigma is 0.0"),
        (CMA, {"noise": "white"}, "noise is 'white'"),
        (CMA, {"center": np.zeros(5001)}, r"5,001 parameters; CMA-ES takes at most 5,000; use SepCMA"),
        (partial(Restarts, partial(CMA, center=np.zeros(2))), {"kind": "twice", "center": None}, "kind is 'twice'"),
    ],
)
def test_bad_arguments_are_refused_by_name_and_value(strategy: Make, arguments: dict, message: str) -> None:
    arguments = {"center": np.zeros(3)} | arguments
    with pytest.raises(ValueError, match=message):
        strategy(**{name: value for name, value in arguments.items() if value is not None})


@pytest.mark.parametrize("strategy", [SNES, SepCMA, CMA])
def test_the_default_population_is_4_plus_3_log_d(strategy: Make) -> None:
    assert strategy(np.zeros(100)).population == 17
