"""PGPE, SNES, sep-CMA-ES, ClipUp: each update against numbers computed in the test from the papers' formulas."""

from __future__ import annotations

import subprocess
import sys
from math import exp, log, sqrt

import numpy as np
import pytest
import torch

from esker import PGPE, SNES, ClipUp, OpenAIES, SepCMA
from esker.noise.counter import CounterNoise
from esker.noise.table import NoiseTable, TableNoise

D = 4
SCALES = np.array([0.1, 0.5, 1.0, 2.0])


def directions(es: PGPE | SNES | SepCMA, count: int) -> np.ndarray:
    return np.stack([es.noise.direction(es.generation, k) for k in range(count)]).astype(np.float64)


@pytest.mark.parametrize("d", [50, 3000])  # a few short directions are summed at once, others one after the other
@pytest.mark.parametrize("kind", ["table", "counter"])
def test_moments_are_the_weighted_sums_of_directions_and_their_squares(d: int, kind: str) -> None:
    noise = TableNoise(NoiseTable.create(0, 200_000), 0, d) if kind == "table" else CounterNoise(0, d)
    linear, square = np.random.default_rng(0).standard_normal((2, 40))
    linear[:3] = square[2:5] = 0
    rows = np.stack([noise.direction(2, k) for k in range(40)]).astype(np.float64)
    first, second = noise.weighted_moments(2, linear, square)
    np.testing.assert_allclose(first, linear @ rows, atol=5e-5)
    np.testing.assert_allclose(second, square @ rows**2, atol=1e-4)


def test_pgpe_moves_along_both_gradient_estimates() -> None:
    es = PGPE(np.ones(D), population=6, sigma=SCALES, optimizer="sgd", lr=0.5, stdev_lr=0.1, stdev_max_change=None, seed=2)
    eps = directions(es, 3)
    es.tell([5.0, 1.0, 7.0, 2.0, 0.0, 9.0])
    w = (np.array([3, 1, 4, 2, 0, 5]) / 5 - 0.5).reshape(3, 2)  # centred ranks, a row for each pair
    center = 1 + 0.5 / 3 * ((w[:, 0] - w[:, 1]) / 2) @ (SCALES * eps)
    stdev = SCALES + 0.1 / 3 * ((w[:, 0] + w[:, 1]) / 2) @ (SCALES * (eps**2 - 1))
    np.testing.assert_allclose(es.center.numpy(), center, atol=1e-6)
    np.testing.assert_allclose(es.stdev, stdev, atol=1e-6)


def test_pgpe_changes_a_standard_deviation_by_at_most_a_share_of_it() -> None:
    es = PGPE(np.ones(D), population=6, sigma=SCALES, stdev_lr=1000.0, stdev_max_change=0.2)
    es.tell([5.0, 4.0, 1.0, 2.0, 0.0, 1.0])
    np.testing.assert_allclose(np.abs(es.stdev / SCALES - 1), 0.2, rtol=1e-5)


def test_pgpe_with_clipup_first_moves_by_half_of_a_15th_of_its_radius() -> None:
    es = PGPE(np.zeros(100), population=10, sigma=0.3)
    es.tell(np.arange(10.0))
    assert float(torch.linalg.vector_norm(es.center)) == pytest.approx(0.3 * sqrt(100) / 15 / 2, rel=1e-5)


@pytest.mark.parametrize("strategy", [PGPE, OpenAIES])
def test_a_decaying_rate_shrinks_clipups_maximum_speed_with_it(strategy: type[PGPE | OpenAIES]) -> None:
    es = strategy(np.zeros(100), population=10, optimizer="clipup", lr=0.02, max_speed=0.03, lr_decay=0.5)
    moved = [es.tell(np.arange(10.0)).update_norm for _ in range(6)]
    assert moved[0] == pytest.approx(0.02, rel=1e-5)  # before the limit is met
    for generation in (4, 5):  # what is left of earlier velocities is above the limit
        assert moved[generation] == pytest.approx(0.03 * 0.5**generation, rel=1e-5)
    assert es.lr == 0.02 * 0.5**6


def test_pgpe_continues_from_a_state_of_before_its_rate_could_decay_without_decay() -> None:
    former = PGPE(np.zeros(10), population=6, lr=0.1)
    resumed, again = (PGPE(np.zeros(10), population=6, lr=0.1, lr_decay=0.5) for _ in range(2))
    former.tell(np.arange(6.0))
    resumed.load_state_dict({name: value for name, value in former.state_dict().items() if name != "lr"})
    resumed.tell(np.arange(6.0))
    again.load_state_dict(resumed.state_dict())
    again.tell(np.arange(6.0))
    for _ in range(2):
        former.tell(np.arange(6.0))
    assert torch.equal(former.center, again.center)
    assert again.lr == 0.1


@pytest.mark.parametrize("strategy", [PGPE, OpenAIES])
def test_a_rate_that_has_decayed_to_0_is_loaded_and_one_that_is_no_number_is_not(strategy: type[PGPE | OpenAIES]) -> None:
    es, other = (strategy(np.zeros(10), population=6, lr_decay=1e-200) for _ in range(2))
    for _ in range(2):
        es.tell(np.arange(6.0))
    other.load_state_dict(es.state_dict())
    assert other.lr == 0.0
    with pytest.raises(ValueError, match="lr is nan; expected a number of at least 0"):
        other.load_state_dict(es.state_dict() | {"lr": float("nan")})


@pytest.mark.parametrize("antithetic", [False, True])
def test_snes_moves_along_the_natural_gradient(antithetic: bool) -> None:
    es = SNES(np.ones(D), population=6, sigma=SCALES, lr=0.7, antithetic=antithetic, seed=2)
    eps = directions(es, 6)
    if antithetic:
        eps = np.repeat(eps[:3], 2, axis=0) * np.array([1, -1] * 3)[:, None]
    es.tell([5.0, 1.0, 7.0, 2.0, 0.0, 9.0])
    utility = np.maximum(0, log(6 / 2 + 1) - np.log(np.arange(1, 7)))  # of the best, the second best, …
    u = (utility / utility.sum() - 1 / 6)[[2, 4, 1, 3, 5, 0]]
    rate = (3 + log(D)) / (5 * sqrt(D))
    np.testing.assert_allclose(es.center.numpy(), 1 + 0.7 * SCALES * (u @ eps), atol=1e-6)
    np.testing.assert_allclose(es.stdev, SCALES * np.exp(rate / 2 * (u @ (eps**2 - 1))), rtol=1e-5)


def test_sep_cma_makes_two_updates_of_its_paper() -> None:
    """Two generations, since the paths begin at zero."""
    es, lam = SepCMA(np.ones(D), population=6, sigma=0.5, seed=3), 6
    raw = log((lam + 1) / 2) - np.log(np.arange(1, 4))
    w = raw / raw.sum()
    mu = 1 / (w**2).sum()
    cs, cc = (mu + 2) / (D + mu + 5), (4 + mu / D) / (D + 4 + 2 * mu / D)
    ds = 1 + 2 * max(0, sqrt((mu - 1) / (D + 1)) - 1) + cs
    c1 = (D + 2) / 3 * 2 / ((D + 1.3) ** 2 + mu)
    cmu = min(1 - c1, (D + 2) / 3 * 2 * (0.25 + mu + 1 / mu - 2) / ((D + 2) ** 2 + mu))
    chi = sqrt(D) * (1 - 1 / (4 * D) + 1 / (21 * D**2))
    m, sigma, c, ps, pc = np.ones(D), 0.5, np.ones(D), np.zeros(D), np.zeros(D)
    for generation in range(2):
        z = directions(es, lam)[[5, 2, 0]]  # the best three, best first
        es.tell([5.0, 1.0, 7.0, 2.0, 0.0, 9.0])
        y = np.sqrt(c) * z
        m = m + sigma * (w @ y)
        ps = (1 - cs) * ps + sqrt(cs * (2 - cs) * mu) * (w @ z)
        length = sqrt((ps**2).sum())
        h = length / sqrt(1 - (1 - cs) ** (2 * (generation + 1))) < (1.4 + 2 / (D + 1)) * chi
        pc = (1 - cc) * pc + h * sqrt(cc * (2 - cc) * mu) * (w @ y)
        c = (1 - c1 - cmu + (1 - h) * c1 * cc * (2 - cc)) * c + c1 * pc**2 + cmu * (w @ y**2)
        sigma *= exp(cs / ds * (length / chi - 1))
    best_first = [5, 2, 0]
    assert best_first == np.argsort([-5.0, -1.0, -7.0, -2.0, 0.0, -9.0])[:3].tolist()
    np.testing.assert_allclose(es.center.numpy(), m, atol=1e-5)
    np.testing.assert_allclose(es.variance, c, rtol=1e-5)
    assert es.sigma == pytest.approx(sigma, rel=1e-6)


def test_updates_need_memory_of_order_d() -> None:
    """100 members of d = 200,000 parameters: the matrix would take 80 MB, an update may take a few rows."""
    program = """
import resource, numpy as np
from esker.strategies import PGPE, SNES, SepCMA
from esker.noise.table import NoiseTable, TableNoise
d = 200_000
noise = TableNoise(NoiseTable.create(0, 2 * d), 0, d)
noise.weighted_sum(0, np.ones(2))
for strategy in (PGPE, SNES, SepCMA):
    es = strategy(np.zeros(d, np.float32), population=100, noise=noise)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    es.tell(np.arange(100.0))
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    grown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert max(map(int, grown.split())) < 25 * 4 * 200_000


@pytest.mark.parametrize("strategy", [SNES, SepCMA])
def test_an_ellipsoid_of_condition_a_million_is_solved(strategy: type[SNES] | type[SepCMA]) -> None:
    curvature = 10 ** torch.linspace(0, 6, 20)
    es = strategy(np.ones(20), sigma=0.5, seed=1)
    for _ in range(900):
        es.tell(-(curvature * es.ask().parameters() ** 2).sum(1))
    assert float((curvature * es.center**2).sum()) < 1e-3  # it started at 2 million


def test_clipup_steps_by_its_lr_whatever_the_gradients_size() -> None:
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3e-7, 4e-7])
    ClipUp([parameter], lr=0.5).step()
    np.testing.assert_allclose(parameter.detach().numpy(), [-0.3, -0.4], rtol=1e-6)


def test_clipup_carries_its_velocity_on_and_clips_it() -> None:
    """Steps along one axis with lr 1, momentum 0.9, limit 1.5: 1, then 0.9 + 1 clipped to 1.5."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    optimizer, places = ClipUp([parameter], lr=1.0, max_speed=1.5), []
    for gradient in ([-1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]):
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        places.append(float(parameter[0].detach()))
    np.testing.assert_allclose(places, [1.0, 2.5, 2.5 + 0.9 * 1.5], rtol=1e-6)


def test_clipups_speed_is_limited_to_twice_its_lr_unless_given() -> None:
    es, moved = OpenAIES(np.zeros(D), population=4, lr=0.1, optimizer="clipup", momentum=0.99), []
    for _ in range(60):
        es.generation = 0  # the same directions, so that the velocity only grows
        moved.append(es.tell(np.arange(4.0)).update_norm)
    assert moved[0] == pytest.approx(0.1, rel=1e-5)
    assert moved[-1] == pytest.approx(0.2, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"lr": 0.0}, "lr is 0.0"), ({"max_speed": -1.0}, "max_speed is -1.0"), ({"momentum": 1.0}, "momentum is 1.0")],
)
def test_clipup_refuses_bad_values(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClipUp([torch.zeros(2)], **options)
