"""OpenAI-ES: the update against numbers computed in the test, and things that must be solved."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from esker import OpenAIES
from esker.noise.counter import CounterNoise

D = 6


def directions(es: OpenAIES, count: int) -> np.ndarray:
    return np.stack([es.noise.direction(es.generation, k) for k in range(count)]).astype(np.float64)


def test_members_of_a_pair_mirror_each_other_about_the_center() -> None:
    es = OpenAIES(np.arange(D, dtype=np.float32), population=4, sigma=0.5, seed=9)
    rows, eps = es.ask().parameters().numpy(), directions(es, 2)
    expected = np.stack([np.arange(D) + sign * 0.5 * eps[k] for k in (0, 1) for sign in (1, -1)])
    np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_independent_members_each_have_their_own_direction() -> None:
    es = OpenAIES(np.zeros(D), population=3, sigma=0.5, antithetic=False, seed=9)
    np.testing.assert_allclose(es.ask().parameters().numpy(), 0.5 * directions(es, 3), atol=1e-6)


def test_a_slice_of_members_equals_those_rows_of_all() -> None:
    es = OpenAIES(np.zeros(D), population=10, seed=1)
    assert torch.equal(es.ask(slice(3, 7)).parameters(), es.ask().parameters()[3:7])


def test_plain_ascent_moves_by_the_gradient_estimate() -> None:
    """θ' = θ + lr·g with g = 1/(Nσ) Σ wᵢεᵢ and w the centred ranks."""
    es = OpenAIES(np.ones(D), population=6, sigma=0.3, lr=0.1, optimizer="sgd", seed=2)
    eps = np.repeat(directions(es, 3), 2, axis=0) * np.array([1, -1] * 3)[:, None]
    fitness = np.array([5.0, 1.0, 7.0, 2.0, 0.0, 9.0])
    ranks = np.array([3, 1, 4, 2, 0, 5]) / 5 - 0.5
    es.tell(fitness)
    np.testing.assert_allclose(es.center.numpy(), 1 + 0.1 / (6 * 0.3) * (ranks @ eps), atol=1e-6)


def test_the_estimate_approaches_the_gradient_of_a_quadratic() -> None:
    """For F(θ) = -|θ|² the raw-fitness estimate has expectation -2θ."""
    start = np.linspace(-1, 1, D)
    es = OpenAIES(start, population=20_000, sigma=0.1, lr=1.0, optimizer="sgd", shaping="raw", seed=4)
    es.tell(-(es.ask().parameters() ** 2).sum(1))
    np.testing.assert_allclose(es.center.numpy() - start, -2 * start, atol=0.08)


def test_equal_fitness_does_not_move_the_center() -> None:
    es = OpenAIES(np.ones(D), population=8, seed=0)
    es.tell(np.full(8, 3.3))
    assert es.center.tolist() == [1.0] * D


def test_adam_has_bias_correction() -> None:
    """The first Adam step is lr·sign(g), whatever the gradient's size."""
    es = OpenAIES(np.zeros(D), population=8, lr=0.02, optimizer="adam", seed=3)
    es.tell(np.arange(8.0))
    np.testing.assert_allclose(np.abs(es.center.numpy()), 0.02, rtol=1e-4)


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [("sgd", 1 - 0.1 * 0.5), ("adamw", 1 - 0.1 * 0.5), ("adam", 1 - 0.1), ("rmsprop", 1 - 0.1 * 10)],
)
def test_weight_decay_is_applied_once(optimizer: str, expected: float) -> None:
    """With a zero gradient: SGD and AdamW shrink by lr·decay, Adam's and RMSprop's L2 step is scale-free (1 and 10 lr)."""
    es = OpenAIES(np.ones(D), population=4, lr=0.1, optimizer=optimizer, weight_decay=0.5, seed=0)  # type: ignore[arg-type]
    es.tell(np.zeros(4))
    np.testing.assert_allclose(es.center.numpy(), expected, atol=1e-5)


def test_momentum_carries_the_last_step_on() -> None:
    es = OpenAIES(np.zeros(D), population=4, lr=0.1, optimizer="sgd", momentum=0.9, seed=5)
    es.tell(np.arange(4.0))
    first = es.center.numpy().copy()
    es.tell(np.zeros(4))
    np.testing.assert_allclose(es.center.numpy(), 1.9 * first, rtol=1e-5)


def test_lr_and_sigma_decay_once_a_generation() -> None:
    es = OpenAIES(np.zeros(D), population=4, lr=0.1, sigma=0.5, lr_decay=0.9, sigma_decay=0.8, optimizer="sgd")
    first = es.tell(np.arange(4.0))
    second = es.tell(np.arange(4.0))
    assert (first.lr, first.sigma) == (0.1, 0.5)
    assert (second.lr, second.sigma) == pytest.approx((0.09, 0.4))


def test_copies_with_equal_seeds_and_fitness_stay_bit_identical() -> None:
    one, other = (OpenAIES(np.zeros(50), population=20, seed=7) for _ in range(2))
    for _ in range(5):
        fitness = -(one.ask().parameters() ** 2).sum(1)
        one.tell(fitness)
        other.tell(fitness)
    assert one.center.numpy().tobytes() == other.center.numpy().tobytes()


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "rmsprop"])
def test_a_restored_strategy_continues_bit_identically(optimizer: str) -> None:
    def make() -> OpenAIES:
        momentum = 0.9 if optimizer in ("sgd", "rmsprop") else 0.0
        return OpenAIES(np.ones(20), population=10, optimizer=optimizer, momentum=momentum, lr_decay=0.9, seed=1)  # type: ignore[arg-type]

    whole, half = make(), make()
    rng = np.random.default_rng(0)
    told = [rng.standard_normal(10) for _ in range(6)]
    for fitness in told:
        whole.tell(fitness)
    for fitness in told[:3]:
        half.tell(fitness)
    resumed = make()
    resumed.load_state_dict(half.state_dict())
    for fitness in told[3:]:
        resumed.tell(fitness)
    assert resumed.center.numpy().tobytes() == whole.center.numpy().tobytes()


def test_the_update_has_the_same_bits_on_1_2_and_4_threads() -> None:
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            es = OpenAIES(np.ones(166_001), population=16, weight_decay=0.01, noise=CounterNoise(0, 166_001))
            for _ in range(3):
                es.tell(np.arange(16.0))
            found.append(es.center.numpy().tobytes())
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1] == found[2]


def test_a_sphere_in_100_dimensions_is_solved() -> None:
    es = OpenAIES(torch.ones(100), population=50, sigma=0.05, lr=0.05, lr_decay=0.99, seed=1)
    for _ in range(400):
        es.tell(-(es.ask().parameters() ** 2).sum(1))
    assert float((es.center**2).sum()) < 0.1  # it started at 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"population": 5}, "population is 5; expected an even number"),
        ({"sigma": -1.0}, "sigma is -1.0; expected a number above 0"),
        ({"lr": 0.0}, "lr is 0.0"),
        ({"optimizer": "adamm"}, "optimizer is 'adamm'; expected one of adam"),
        ({"shaping": "rank"}, "shaping is 'rank'"),
        ({"momentum": 0.5}, "adam has none"),
        ({"noise": "white"}, "noise is 'white'"),
    ],
)
def test_bad_arguments_are_refused_by_name_and_value(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpenAIES(np.zeros(3), **arguments)


@pytest.mark.parametrize("center", [np.zeros((2, 2)), np.zeros(0), np.array([1.0, np.nan])])
def test_a_center_that_is_not_a_finite_vector_is_refused(center: np.ndarray) -> None:
    with pytest.raises(ValueError, match="center"):
        OpenAIES(center)


@pytest.mark.parametrize("fitness", [[1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0, 3.0, np.nan]])
def test_fitness_of_the_wrong_shape_or_value_is_refused(fitness: list) -> None:
    with pytest.raises(ValueError, match="fitness"):
        OpenAIES(np.zeros(3), population=4).tell(fitness)


def test_fitness_that_requires_a_gradient_is_taken_as_numbers() -> None:
    plain, tracked = (OpenAIES(torch.zeros(3, requires_grad=True), population=4) for _ in range(2))
    plain.tell([0.0, 1.0, 2.0, 3.0])
    tracked.tell(torch.arange(4.0, requires_grad=True) * 2)
    assert torch.equal(plain.center, tracked.center)


def test_what_is_no_slice_of_members_is_refused() -> None:
    with pytest.raises(TypeError, match=r"ask\(3\): expected a slice of members, as ask\(slice\(0, 8\)\)"):
        OpenAIES(np.zeros(3), population=4).ask(3)  # type: ignore[arg-type]
