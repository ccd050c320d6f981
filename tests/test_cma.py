"""CMA-ES with a full covariance, and its restarts: updates computed in the test, addresses, exact resumption."""

from __future__ import annotations

import pickle
from functools import partial
from math import exp, log, sqrt

import numpy as np
import pytest
import torch

from esker import CMA, Restarts, SepCMA
from esker.noise.correlated import WIDTH, CorrelatedPopulation
from esker.noise.counter import CounterNoise

D, FITNESS = 4, [5.0, 1.0, 7.0, 2.0, 0.0, 9.0]
BEST_FIRST = np.argsort(-np.array(FITNESS))


def members(d: int, chosen: range) -> CorrelatedPopulation:
    transform = np.random.default_rng(0).standard_normal((d, d)).astype(np.float32)
    return CorrelatedPopulation(np.ones(d, np.float32), 0.3, 2, False, CounterNoise(5, d), chosen, transform)


def test_members_are_the_center_plus_sigma_times_transformed_directions() -> None:
    some = members(D, range(3))
    eps = np.stack([some.noise.direction(2, k) for k in range(3)])  # type: ignore[union-attr]
    np.testing.assert_allclose(some.parameters().numpy(), 1 + 0.3 * eps @ some.transform.T, atol=1e-5)


def test_a_members_bits_do_not_depend_on_which_others_are_asked_for() -> None:
    whole, out = members(257, range(3 * WIDTH)), np.empty(257, np.float32)
    rows = whole.parameters().numpy()
    sent = pickle.loads(pickle.dumps(whole)).bound(CounterNoise(5, 257))
    for member in (0, 3, WIDTH, 2 * WIDTH + 7):
        sent.write(member, out)
        assert out.tobytes() == rows[member].tobytes()
    assert sent.select(range(5, 13)).parameters().numpy().tobytes() == rows[5:13].tobytes()


@pytest.mark.parametrize("active", [False, True])
def test_cma_makes_two_updates_of_the_tutorial(active: bool) -> None:
    """Two generations, since the paths begin at zero; the second one's members come from the first one's covariance."""
    es, lam = CMA(np.ones(D), population=6, sigma=0.5, active=active, seed=3), 6
    raw = log((lam + 1) / 2) - np.log(np.arange(1, lam + 1))
    w = np.maximum(raw, 0) / np.maximum(raw, 0).sum()
    mu = 1 / (w**2).sum()
    cs, cc = (mu + 2) / (D + mu + 5), (4 + mu / D) / (D + 4 + 2 * mu / D)
    ds = 1 + 2 * max(0, sqrt((mu - 1) / (D + 1)) - 1) + cs
    c1 = 2 / ((D + 1.3) ** 2 + mu)
    cmu = min(1 - c1, 2 * (0.25 + mu + 1 / mu - 2) / ((D + 2) ** 2 + mu))
    chi = sqrt(D) * (1 - 1 / (4 * D) + 1 / (21 * D**2))
    negative = np.minimum(raw, 0)
    scale = min(1 + c1 / cmu, 1 + 2 * negative.sum() ** 2 / (negative**2).sum() / (mu + 2), (1 - c1 - cmu) / (D * cmu))
    w_c = w + active * scale * negative / -negative.sum()
    m, sigma, c, a, ps, pc = np.ones(D), 0.5, np.eye(D), np.eye(D), np.zeros(D), np.zeros(D)
    for generation in range(2):
        z = np.stack([es.noise.direction(generation, k) for k in range(lam)]).astype(np.float64)[BEST_FIRST]
        es.tell(FITNESS)
        y = z @ a.T
        m = m + sigma * (w @ y)
        ps = (1 - cs) * ps + sqrt(cs * (2 - cs) * mu) * (w @ z)
        length = sqrt((ps**2).sum())
        h = length / sqrt(1 - (1 - cs) ** (2 * (generation + 1))) < (1.4 + 2 / (D + 1)) * chi
        pc = (1 - cc) * pc + h * sqrt(cc * (2 - cc) * mu) * (w @ y)
        limited = np.where(w_c < 0, w_c * D / (z**2).sum(1), w_c)
        c = (1 - c1 - cmu * w_c.sum() + (1 - h) * c1 * cc * (2 - cc)) * c + c1 * np.outer(pc, pc)
        c = c + cmu * sum(weight * np.outer(row, row) for weight, row in zip(limited, y, strict=True))
        a = np.linalg.cholesky(c)
        sigma *= exp(cs / ds * (length / chi - 1))
    np.testing.assert_allclose(es.center.numpy(), m, atol=1e-5)
    np.testing.assert_allclose(es.covariance.numpy(), c, atol=1e-5)
    assert es.sigma == pytest.approx(sigma, rel=1e-5)


def rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(1)


@pytest.mark.parametrize("active", [False, True])
def test_rosenbrock_in_10_dimensions_is_solved(active: bool) -> None:
    es = CMA(np.zeros(10), sigma=0.5, active=active, seed=1)
    for _ in range(900):
        es.tell(-rosenbrock(es.ask().parameters()))
    assert float(rosenbrock(es.center[None])) < 1e-6


def test_a_rotated_ellipsoid_of_condition_a_million_is_solved() -> None:
    rotation = torch.linalg.qr(torch.from_numpy(np.random.default_rng(0).standard_normal((10, 10)))).Q.float()
    curvature = 10 ** torch.linspace(0, 6, 10)
    es = CMA(np.ones(10), sigma=0.5, seed=1)
    for _ in range(900):
        es.tell(-(curvature * (es.ask().parameters() @ rotation) ** 2).sum(1))
    assert float((curvature * (es.center @ rotation) ** 2).sum()) < 1e-6


def rastrigin(x: torch.Tensor) -> torch.Tensor:
    return (10 + (x - 1) ** 2 - 10 * torch.cos(2 * torch.pi * (x - 1))).sum(1)


def restarting(kind: str = "ipop", **options: int) -> Restarts:
    make = partial(CMA, center=np.full(3, 4.0), sigma=1.0, seed=5)
    return Restarts(make, kind=kind, seed=5, **options)  # type: ignore[arg-type]


def descend(es: Restarts, generations: int) -> list[tuple[int, int]]:
    """The restart and the population of each generation."""
    seen = []
    for _ in range(generations):
        seen.append((es.restart, es.population))
        es.tell(-rastrigin(es.ask().parameters()))
    return seen


def test_ipop_doubles_the_population_at_each_restart() -> None:
    es = restarting(restarts=2)
    populations = dict(descend(es, 450))
    first = CMA(np.zeros(3)).population
    assert populations == {restart: first * 2**restart for restart in range(3)}
    assert es.stopped is not None


def test_bipop_gives_the_smaller_budget_the_next_restart() -> None:
    es, first, spent = restarting("bipop", restarts=12), CMA(np.zeros(3)).population, {True: 0, False: 0}
    regime, doublings = True, 0
    for _ in range(600):
        before = es.restart
        if before:
            spent[regime] += es.population
        es.tell(-rastrigin(es.ask().parameters()))
        if es.restart > before:
            regime = spent[True] <= spent[False]
            doublings += regime
            assert es.large == regime
            if regime:
                assert es.population == first * 2**doublings
            else:
                assert 2 <= es.population <= first * 2**doublings
    assert es.restart >= 3
    assert min(spent.values()) > 0


def test_a_restart_begins_elsewhere_with_perturbations_not_used_before() -> None:
    es, seen = restarting(restarts=2), set()
    while es.restart < 2:
        es.tell(-rastrigin(es.ask().parameters()))
        seen.add(es.ask().noise.direction(es.ask().generation, 0).tobytes())  # type: ignore[union-attr]
    assert len(seen) == es.generation
    assert es.ask().generation == es.generation
    assert float((es.center - 4.0).abs().max()) > 0.1


@pytest.mark.parametrize("kind", ["ipop", "bipop"])
def test_restarts_continue_bit_identically_from_a_state(kind: str) -> None:
    whole, half, resumed = (restarting(kind, restarts=3) for _ in range(3))
    descend(whole, 400)
    descend(half, 200)
    assert half.restart >= 1
    resumed.load_state_dict(half.state_dict())
    descend(resumed, 200)
    assert resumed.restart == whole.restart > half.restart
    assert resumed.center.numpy().tobytes() == whole.center.numpy().tobytes()


def test_rastrigin_is_solved_by_restarts_where_one_run_is_stuck() -> None:
    def solved(es: CMA | Restarts) -> bool:
        for _ in range(800):
            values = rastrigin(es.ask().parameters())
            if float(values.min()) < 1e-4:
                return True
            es.tell(-values)
        return False

    assert not solved(CMA(np.full(3, 4.0), sigma=1.0, seed=5))
    assert solved(restarting(restarts=4))


@pytest.mark.parametrize("strategy", [CMA, SepCMA])
def test_a_run_without_progress_says_why_it_stopped(strategy: type[CMA] | type[SepCMA]) -> None:
    es = strategy(np.zeros(3), population=8)
    assert es.stopped is None
    for _ in range(30):
        es.tell(np.zeros(8))
    assert es.stopped == "fitness has not changed in 22 generations"


def test_a_strategy_that_never_stops_has_no_restarts() -> None:
    from esker import SNES

    with pytest.raises(ValueError, match="SNES never stops; restarts are for CMA and SepCMA"):
        Restarts(partial(SNES, center=np.zeros(3)))  # type: ignore[arg-type]
