"""Populations: members by address, with one scale or one per parameter, sent without their noise."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from esker.noise.counter import CounterNoise
from esker.noise.population import Population

D = 5
NOISE = CounterNoise(4, D)
CENTER = np.arange(D, dtype=np.float32)
SCALES = np.linspace(0.1, 2.0, D).astype(np.float32)


def population(scale: float | np.ndarray, antithetic: bool = True, members: range = range(6)) -> Population:
    return Population(CENTER, scale, 3, antithetic, NOISE, members)


def written(members: Population) -> np.ndarray:
    out = np.empty((len(members), D), dtype=np.float32)
    for row, member in enumerate(members.members):
        members.write(member, out[row])
    return out


def test_each_parameter_is_perturbed_by_its_own_scale() -> None:
    expected = np.stack([CENTER + sign * SCALES * NOISE.direction(3, k) for k in range(3) for sign in (1, -1)])
    np.testing.assert_allclose(population(SCALES).parameters().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("scale", [0.3, SCALES])
@pytest.mark.parametrize("antithetic", [True, False])
@pytest.mark.parametrize("members", [range(6), range(1, 4)])
def test_rows_have_the_bits_of_written_members(scale: float | np.ndarray, antithetic: bool, members: range) -> None:
    some = population(scale, antithetic, members)
    assert some.parameters().numpy().tobytes() == written(some).tobytes()


def test_equal_scales_have_the_bits_of_one_scale() -> None:
    many = population(np.full(D, 0.3, np.float32)).parameters()
    assert many.numpy().tobytes() == population(0.3).parameters().numpy().tobytes()


def test_a_population_travels_without_its_noise_and_is_bound_to_another_copy() -> None:
    sent = pickle.loads(pickle.dumps(population(SCALES)))
    assert sent.noise is None
    with pytest.raises(ValueError, match=r"population\.bound\(noise\)"):
        sent.parameters()
    assert written(sent.bound(CounterNoise(4, D))).tobytes() == written(population(SCALES)).tobytes()


def test_sigma_is_the_mean_of_the_scales() -> None:
    assert population(0.3).sigma == 0.3
    assert population(SCALES).sigma == pytest.approx(float(SCALES.mean()))
