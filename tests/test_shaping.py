"""Fitness to weights: every shaping against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.noise.shaping import SHAPINGS, shape

finite = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def test_centered_rank_runs_from_minus_half_to_half() -> None:
    assert shape("centered_rank", np.array([30.0, 10.0, 20.0, 40.0, 50.0])).tolist() == [0.0, -0.5, -0.25, 0.25, 0.5]


def test_centered_rank_gives_ties_the_mean_of_their_places() -> None:
    # places -1/2, -1/4, 0, 1/4, 1/2; the three 2s share -1/4, 0, 1/4
    assert shape("centered_rank", np.array([2.0, 1.0, 2.0, 2.0, 3.0])).tolist() == [0.0, -0.5, 0.0, 0.0, 0.5]


def test_normalized_has_mean_zero_and_population_deviation_one() -> None:
    # mean 4, deviations -3, -1, 4; variance (9 + 1 + 16)/3
    expected = np.array([-3.0, -1.0, 4.0]) / np.sqrt(26 / 3)
    np.testing.assert_allclose(shape("normalized", np.array([1.0, 3.0, 8.0])), expected, rtol=1e-14)


def test_log_utility_follows_the_formula() -> None:
    # N = 4: log2(3) - log2(rank) for ranks 1, 2 is 1.584963, 0.584963; ranks 3, 4 give 0
    top, second = np.log2(3), np.log2(3) - 1
    expected = np.array([0.0, top, 0.0, second]) / (top + second) - 0.25
    np.testing.assert_allclose(shape("log_utility", np.array([1.0, 9.0, 2.0, 5.0])), expected, rtol=1e-12)


def test_raw_subtracts_the_mean() -> None:
    assert shape("raw", np.array([1.0, 2.0, 6.0])).tolist() == [-2.0, -1.0, 3.0]


@pytest.mark.parametrize("name", SHAPINGS)
@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e9])
def test_equal_fitness_gives_exactly_zero_weights(name: str, value: float) -> None:
    assert shape(name, np.full(7, value)).tolist() == [0.0] * 7


@pytest.mark.parametrize("name", SHAPINGS)
@given(values=finite, shuffle=st.randoms())
def test_weights_follow_their_member_when_members_are_reordered(name: str, values: list[float], shuffle: object) -> None:
    order = list(range(len(values)))
    shuffle.shuffle(order)  # type: ignore[attr-defined]
    fitness = np.array(values)
    np.testing.assert_allclose(shape(name, fitness)[order], shape(name, fitness[order]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SHAPINGS)
@given(values=finite)
def test_a_better_member_never_weighs_less(name: str, values: list[float]) -> None:
    weights = shape(name, np.array(values))[np.argsort(values, kind="stable")]
    assert (np.diff(weights) >= -1e-12).all()


def test_a_failed_member_ranks_below_every_other() -> None:
    assert shape("centered_rank", np.array([1.0, -np.inf, 5.0])).tolist() == [0.0, -0.5, 0.5]


def test_a_failed_member_counts_as_the_worst_finite_fitness_by_value() -> None:
    assert shape("raw", np.array([3.0, -np.inf, 0.0])).tolist() == [2.0, -1.0, -1.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_fitness_is_refused_with_its_place(bad: float) -> None:
    with pytest.raises(ValueError, match=r"fitness\[1\] is"):
        shape("centered_rank", np.array([0.0, bad]))


def test_a_generation_in_which_every_member_failed_is_refused() -> None:
    with pytest.raises(ValueError, match="every member failed"):
        shape("centered_rank", np.array([-np.inf, -np.inf]))


def test_an_unknown_shaping_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'centered_rank'"):
        shape("centred_rank", np.zeros(2))
