"""CEM, asynchronous CEM, (1+1)-ES and AES against values worked out here, from the rules as published."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from esker.strategies import AES, CEM, AsyncCEM, OnePlusOne

INF = math.inf


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual, dtype=np.float64), np.asarray(expected), rtol=1e-12, atol=1e-15)


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


# CEM


def test_cem_mirrors_the_second_half_of_the_population():
    members = CEM(f64(1.0, -2.0, 0.5), population=6, var=0.25, seed=3).ask()
    assert members.shape == (6, 3)
    close(members[:3] + members[3:], np.tile([2.0, -4.0, 1.0], (3, 1)))
    assert len({tuple(row.tolist()) for row in members}) == 6


def test_cem_samples_have_the_mean_and_variance_asked_for():
    cem = CEM(torch.full((4,), 3.0), population=2000, var=torch.tensor([0.01, 0.25, 1.0, 4.0]), antithetic=False)
    rows = cem.ask().double()
    np.testing.assert_allclose(rows.mean(0), 3.0, atol=0.2)
    np.testing.assert_allclose(rows.var(0), [0.01, 0.25, 1.0, 4.0], rtol=0.15)


def test_cem_asks_the_same_population_until_told():
    cem = CEM(torch.zeros(5), seed=1)
    first = cem.ask()
    assert torch.equal(first, cem.ask())
    cem.tell(first, np.arange(10.0))
    assert not torch.equal(first - 0, cem.ask())


def test_cem_refits_mean_and_variance_to_the_better_half():
    cem = CEM(f64(1.0, 1.0), population=4, var=1e-3)
    rows = f64(0.0, 5.0, 2.0, -1.0, 3.0, 3.0, 9.0, 9.0).reshape(4, 2)
    cem.tell(rows, [1.0, 4.0, 3.0, -7.0])  # elites: row 1, then row 2
    raw = [math.log(3 / 1), math.log(3 / 2)]
    weight = [raw[0] / sum(raw), raw[1] / sum(raw)]
    close(cem.mean, [weight[0] * 2 + weight[1] * 3, weight[0] * -1 + weight[1] * 3])
    spread = [weight[0] * (2 - 1) ** 2 + weight[1] * (3 - 1) ** 2, weight[0] * (-1 - 1) ** 2 + weight[1] * (3 - 1) ** 2]
    damp = 0.9 * 1e-3 + 0.1 * 1e-5  # decayed before it is added, as in the repositories
    close(cem.var, [spread[0] / 2 + damp, spread[1] / 2 + damp])


def test_cem_without_division_is_the_papers_variance():
    cem = CEM(f64(0.0), population=4, var=1e-3, divide_variance=False, damp_init=0.5, damp_tau=1.0)
    cem.tell(f64(2.0, 4.0, 0.0, 0.0).reshape(4, 1), [2.0, 1.0, 0.0, 0.0])
    a, b = math.log(3), math.log(1.5)
    close(cem.var, [(a * 4 + b * 16) / (a + b) + 0.5])


def test_cem_damping_decays_to_its_limit():
    cem = CEM(torch.zeros(2), damp_tau=0.5, damp_init=1.0, damp_limit=0.25)
    added = []
    for _ in range(3):
        cem.tell(torch.zeros(10, 2), np.zeros(10))  # individuals without spread: the variance is the damping alone
        added.append(cem.var[0].item())
    assert added == [0.625, 0.4375, 0.34375]


def test_a_cem_continues_from_an_older_state_with_the_damping_stored_there():
    cem = CEM(f64(0.0), damp_tau=0.5)
    cem.load_state_dict({"mean": f64(0.0), "var": f64(1.0), "damp": 0.75, "generation": 3})
    cem.tell(torch.zeros(10, 1), np.zeros(10))
    close(cem.var, [0.75])


def test_cem_with_equal_fitness_takes_the_first_half():
    cem = CEM(f64(0.0), population=4)
    cem.tell(f64(1.0, 2.0, 30.0, 40.0).reshape(4, 1), [5.0] * 4)
    a, b = math.log(3), math.log(1.5)
    close(cem.mean, [(a * 1 + b * 2) / (a + b)])


def test_cem_ranks_failed_individuals_last_and_infinite_ones_first():
    cem = CEM(f64(0.0), population=4)
    cem.tell(f64(1.0, 2.0, 3.0, 4.0).reshape(4, 1), [-INF, 0.0, INF, -INF])
    a, b = math.log(3), math.log(1.5)
    close(cem.mean, [(a * 3 + b * 2) / (a + b)])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"population": 5}, "population is 5"),
        ({"population": 1, "antithetic": False}, "population is 1"),
        ({"var": 0.0}, "var"),
        ({"var": [1.0, 2.0]}, "var has shape"),
        ({"damp_tau": 1.5}, "damp_tau is 1.5"),
        ({"damp_init": -1.0}, "damp_init"),
        ({"mean": []}, "shape"),
        ({"mean": [math.nan]}, "NaN"),
    ],
)
def test_cem_refuses(arguments, words):
    with pytest.raises(ValueError, match=words):
        CEM(**({"mean": [0.0, 0.0, 0.0]} | arguments))


def test_cem_refuses_nan_fitness_and_other_shapes():
    cem = CEM(torch.zeros(3))
    with pytest.raises(ValueError, match="NaN"):
        cem.tell(torch.zeros(10, 3), [math.nan] * 10)
    with pytest.raises(ValueError, match=r"\(9, 3\)"):
        cem.tell(torch.zeros(9, 3), np.zeros(9))


# asynchronous CEM


def test_async_cem_does_not_move_before_its_ring_is_full():
    cem = AsyncCEM(f64(1.0), population=4, var=0.5)
    for value in (2.0, 3.0, 4.0):
        assert cem.tell(f64(value), value) is False
    close(cem.mean, [1.0])
    close(cem.var, [0.5])
    assert cem.damp == 0.9**0.25 * 1e-3 + (1 - 0.9**0.25) * 1e-5


def test_async_cem_moves_by_one_nth_on_each_result_of_the_full_ring():
    cem = AsyncCEM(f64(1.0), population=4, var=0.5, damp_tau=0.9)
    for value, fitness in ((2.0, 0.0), (3.0, 5.0), (4.0, 1.0), (7.0, 9.0)):
        moved = cem.tell(f64(value), fitness)
    assert moved is True
    a, b = math.log(3), math.log(1.5)
    target = (a * 7 + b * 3) / (a + b)
    mean = 1 + (target - 1) / 4
    close(cem.mean, [mean])
    rate = 0.9**0.25
    damp = rate * 1e-3 + (1 - rate) * 1e-5  # decayed before it is added
    close(cem.var, [(a * 36 + b * 4) / (a + b) / 2 + damp])
    damp = rate * damp + (1 - rate) * 1e-5
    cem.tell(f64(-1.0), 6.0)  # replaces 2.0, the oldest: elites are 7 and -1
    target = (a * 7 + b * -1) / (a + b)
    close(cem.var, [(a * (7 - mean) ** 2 + b * (-1 - mean) ** 2) / (a + b) / 2 + damp])
    close(cem.mean, [mean + (target - mean) / 4])


def test_async_cem_damping_of_n_results_equals_one_generation():
    cem, each = CEM(f64(0.0)), AsyncCEM(f64(0.0))
    cem.tell(torch.zeros(10, 1), np.zeros(10))
    for _ in range(19):
        each.tell(f64(0.0), 0.0)  # the ring fills at the tenth, so ten of these move it
    assert each.var.item() == pytest.approx(cem.var.item(), rel=1e-12)


# (1+1)-ES


def test_one_plus_one_takes_only_what_is_better():
    es = OnePlusOne(f64(0.0), var=1.0)
    assert es.tell(f64(1.0), 2.0, 2.0) is False
    close(es.mean, [0.0])
    assert es.tell(f64(3.0), 2.1, 2.0) is True
    close(es.mean, [3.0])


def test_one_plus_one_adapts_from_the_tenth_trial_over_a_sliding_window():
    es = OnePlusOne(f64(0.0), var=1.0)
    trials = [True] * 3 + [False] * 9
    expected = 1.0
    for count, success in enumerate(trials, start=1):
        es.tell(f64(0.0), 1.0 if success else 0.0, 0.5)
        window = trials[max(0, count - 10) : count]
        if count >= 10:
            expected = expected / 0.99 if sum(window) / 10 > 0.2 else expected * 0.99
        close(es.var, [expected])
    assert expected == pytest.approx(0.99)  # grew at 3 of 10, shrank at 2 and at 1 of 10: the window slides


def test_one_plus_one_at_exactly_one_fifth_shrinks():
    es = OnePlusOne(f64(0.0), var=1.0)
    for success in [True, True] + [False] * 8:
        es.tell(f64(0.0), 1.0 if success else 0.0, 0.5)
    close(es.var, [0.99])


def test_one_plus_one_variance_has_a_floor():
    es = OnePlusOne(f64(0.0, 0.0), var=[1.001e-5, 1.0])
    for _ in range(11):
        es.tell(f64(0.0, 0.0), 0.0, 0.0)
    close(es.var, [1e-5, 0.99**2])


def test_one_plus_one_compares_infinities_and_refuses_nan():
    es = OnePlusOne(f64(0.0))
    assert es.tell(f64(1.0), -INF, -INF) is False
    assert es.tell(f64(1.0), 0.0, -INF) is True
    assert es.tell(f64(2.0), INF, 0.0) is True
    with pytest.raises(ValueError, match="mean_fitness is NaN"):
        es.tell(f64(1.0), 0.0, math.nan)


# AES: mean updates


@pytest.mark.parametrize(
    ("rule", "c", "fitness", "mean", "p"),
    [
        ("fixed-linear", 100.0, 130.0, 100.0, 0.3),
        ("fixed-linear", 100.0, 100.0, 100.0, 0.0),
        ("fixed-linear", 100.0, 500.0, 100.0, 1.0),
        ("fixed-linear", 100.0, 50.0, 100.0, 0.0),  # negative, × ratio 0
        ("fixed-linear", 100.0, INF, 0.0, 1.0),
        ("fixed-linear", 100.0, 0.0, -INF, 1.0),
        ("fixed-linear", 100.0, -INF, -INF, 0.0),
        ("fixed-sigmoid", 10.0, 5.0, 5.0, 0.5),
        ("fixed-sigmoid", 10.0, 25.0, 5.0, 1 / (1 + math.exp(-2))),
        ("fixed-sigmoid", 10.0, -15.0, 5.0, 1 / (1 + math.exp(2))),
        ("fixed-sigmoid", 1.0, -1e9, 0.0, 0.0),
        ("fixed-sigmoid", 1.0, 1e9, 0.0, 1.0),
        ("fixed-sigmoid", 1.0, -INF, 0.0, 0.0),
        ("fixed-sigmoid", 1.0, INF, INF, 0.5),
        ("baseline-absolute", -50.0, -60.0, 0.0, 0.0),  # F below the baseline
        ("baseline-absolute", -50.0, -60.0, -70.0, 0.0),
        ("baseline-absolute", -50.0, -40.0, -60.0, 1.0),  # F̄ ≤ b ≤ F
        ("baseline-absolute", -50.0, -45.0, -80.0, 1.0),  # b - F̄ > F - b: the repository's clipped quotient gives 0
        ("baseline-absolute", -50.0, -50.0, -60.0, 1.0),
        ("baseline-absolute", -50.0, -40.0, -50.0, 1.0),
        ("baseline-absolute", -50.0, -50.0, -50.0, 0.5),
        ("baseline-absolute", -50.0, -50.0, 0.0, 0.0),
        ("baseline-absolute", -50.0, 0.0, 100.0, 50 / (50 + 150)),
        ("baseline-absolute", 0.0, 7.0, 7.0, 0.5),
        ("baseline-absolute", 0.0, INF, 7.0, 1.0),
        ("baseline-absolute", 0.0, INF, INF, 0.5),
        ("baseline-absolute", 0.0, 7.0, INF, 0.0),
        ("baseline-absolute", 0.0, -INF, -INF, 0.0),
        ("baseline-relative", 20.0, 100.0, 100.0, 0.5),
        ("baseline-relative", 20.0, 130.0, 100.0, 50 / (50 + 20)),
        ("baseline-relative", 20.0, 90.0, 100.0, 10 / (10 + 20)),
        ("baseline-relative", 20.0, 80.0, 100.0, 0.0),
        ("baseline-relative", 20.0, 79.0, 100.0, 0.0),
        ("baseline-relative", 20.0, INF, 100.0, 1.0),
        ("baseline-relative", 20.0, 0.0, -INF, 1.0),
        ("baseline-relative", 20.0, -INF, -INF, 0.5),
        ("baseline-relative", 20.0, 0.0, INF, 0.0),
    ],
)
def test_aes_moves_the_mean_by_p(rule, c, fitness, mean, p):
    aes = AES(f64(1.0, -1.0), mean_update=rule, param=c)
    assert aes.tell(f64(3.0, 5.0), fitness, mean) == pytest.approx(p, rel=1e-14, abs=0)
    close(aes.mean, [(1 - p) * 1 + p * 3, (1 - p) * -1 + p * 5])


def test_aes_negative_ratio_moves_away_from_what_is_worse():
    aes = AES(f64(1.0), mean_update="fixed-linear", param=100.0, negative_ratio=0.5, var=0.3)
    assert aes.tell(f64(3.0), 60.0, 100.0) == pytest.approx(-0.2)
    close(aes.mean, [1.2 * 1 - 0.2 * 3])
    close(aes.var, [0.3])  # p < 1e-3: no variance update
    assert aes.tell(aes.mean, -INF, 0.0) == -0.5  # clipped at -1 first


# AES: variance updates


@pytest.mark.parametrize(("difference", "p"), [(40.0, 0.4), (10.0, 0.1), (80.0, 0.8), (100.0, 1.0)])
@pytest.mark.parametrize("fixed_n", [None, 10.0])
def test_aes_variance(difference, p, fixed_n):
    kind = "adaptive" if fixed_n is None else "fixed"
    aes = AES(f64(1.0), var=0.7, mean_update="fixed-linear", var_update=kind, param=100.0, fixed_n=fixed_n)
    aes.tell(f64(3.0), difference, 0.0)
    n = fixed_n or max(1 / p - 1, 1)
    new_mean = (1 - p) * 1 + p * 3
    close(aes.var, [max(0.7 + ((3 - 1) * (3 - new_mean) - 0.7) / n, 1e-5)])


def test_aes_variance_does_not_change_below_a_thousandth():
    aes = AES(f64(1.0), var=0.7, mean_update="fixed-linear", param=1000.0)
    aes.tell(f64(3.0), 0.99, 0.0)
    close(aes.var, [0.7])
    aes.tell(aes.mean, 1.0, 0.0)  # p = 1e-3 exactly, z = mean: var ← var(1 - 1/n), n = 999
    close(aes.var, [0.7 * (1 - 1 / 999)])


def test_aes_variance_floor_holds_when_the_mean_jumps_onto_the_individual():
    aes = AES(f64(0.0), var=0.5, mean_update="fixed-linear", param=1.0)
    aes.tell(f64(9.0), 5.0, 0.0)  # p = 1, n = 1: var ← (z - m)(z - z) = 0, floored
    close(aes.var, [1e-5])


@pytest.mark.parametrize("rule", ["fixed-linear", "fixed-sigmoid", "baseline-absolute", "baseline-relative"])
def test_aes_refuses_a_rule_without_its_parameter(rule):
    with pytest.raises(ValueError, match=f"param is None, and mean_update '{rule}' needs it"):
        AES(f64(0.0), mean_update=rule)


@pytest.mark.parametrize("rule", ["fixed-linear", "fixed-sigmoid", "baseline-relative"])
@pytest.mark.parametrize("c", [0.0, -5.0])
def test_aes_refuses_a_scale_that_is_not_positive(rule, c):
    with pytest.raises(ValueError, match="above 0"):
        AES(f64(0.0), mean_update=rule, param=c)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"var_update": "fixed"}, "fixed_n is None"),
        ({"var_update": "fixed", "fixed_n": 0}, "fixed_n is 0"),
        ({"var_update": "sometimes"}, "expected one of fixed, adaptive"),
        ({"mean_update": "linear"}, "expected one of fixed-linear"),
        ({"negative_ratio": 1.5}, "negative_ratio is 1.5"),
        ({"param": math.nan}, "param is nan"),
    ],
)
def test_aes_refuses(arguments, words):
    with pytest.raises(ValueError, match=words):
        AES(**({"mean": [0.0], "param": 1.0} | arguments))


def test_aes_refuses_nan_fitness_and_individuals_of_another_size():
    aes = AES(f64(0.0), param=1.0)
    with pytest.raises(ValueError, match="fitness is NaN"):
        aes.tell(f64(0.0), math.nan, 0.0)
    with pytest.raises(ValueError, match="2 parameters; expected 1"):
        aes.tell(f64(0.0, 1.0), 0.0, 0.0)


# all of them


def strategies(seed=0):
    mean = torch.linspace(-1, 1, 7)
    return {
        "cem": CEM(mean, seed=seed),
        "async": AsyncCEM(mean, seed=seed),
        "one": OnePlusOne(mean, seed=seed),
        "aes": AES(mean, param=5.0, seed=seed),
    }


def sphere(row):
    return -float(((row - 2.0) ** 2).sum())


def one_round(name, strategy):
    asked = strategy.ask()
    if name == "cem":
        strategy.tell(asked, [sphere(row) for row in asked])
    elif name == "async":
        strategy.tell(asked, sphere(asked))
    else:
        strategy.tell(asked, sphere(asked), sphere(strategy.mean))


@pytest.mark.parametrize("name", ["cem", "async", "one", "aes"])
def test_a_state_dict_continues_to_the_same_bits(name):
    one, other = strategies()[name], strategies()[name]
    for _ in range(17):
        one_round(name, one)
    other.load_state_dict(one.state_dict())
    for _ in range(7):
        one_round(name, one)
        one_round(name, other)
    assert torch.equal(one.mean, other.mean)
    assert torch.equal(one.var, other.var)
    assert torch.equal(one.ask(), other.ask())


@pytest.mark.parametrize("name", ["cem", "async", "one", "aes"])
def test_seeds_decide_what_is_asked(name):
    assert torch.equal(strategies(4)[name].ask(), strategies(4)[name].ask())
    assert not torch.equal(strategies(4)[name].ask(), strategies(5)[name].ask())


@pytest.mark.parametrize(("name", "rounds"), [("cem", 100), ("async", 1000), ("one", 600), ("aes", 600)])
def test_each_strategy_climbs_a_sphere(name, rounds):
    mean, damping = torch.linspace(-1, 1, 7), {"damp_init": 0.05, "damp_tau": 0.98}
    strategy = {
        "cem": lambda: CEM(mean, var=0.05, **damping),
        "async": lambda: AsyncCEM(mean, var=0.05, **damping),
        "one": lambda: OnePlusOne(mean, var=0.05),
        "aes": lambda: AES(mean, var=0.05, mean_update="fixed-linear", param=1.0, var_update="fixed", fixed_n=100),
    }[name]()
    start = sphere(strategy.mean)
    for _ in range(rounds):
        one_round(name, strategy)
    assert sphere(strategy.mean) > 0.1 * start
    assert strategy.mean.dtype == torch.float32
