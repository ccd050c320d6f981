"""Low-rank perturbations: every matrix of a direction has the rank asked for, and the update is their weighted sum."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support import center

import esker
from esker.noise.directions import perturb
from esker.noise.lowrank import CHUNK, LowRankNoise
from esker.policies.mlp import MLP
from esker.policies.shared_mlp import SharedMLPRows

SHAPES = ((20, 12), (20,), (6, 4, 3, 3), (6,))


@pytest.mark.parametrize("rank", [1, 3])
def test_each_matrix_has_the_rank_asked_for_and_vectors_have_ordinary_noise(rank: int) -> None:
    noise = LowRankNoise(0, SHAPES, rank)
    row = noise.direction(2, 5)
    assert len(row) == noise.dimension == 240 + 20 + 216 + 6
    assert np.linalg.matrix_rank(row[:240].reshape(20, 12)) == rank
    assert np.linalg.matrix_rank(row[260:476].reshape(6, 36)) == rank
    assert row[240:260].tolist() == noise.factors(2, 5)[rank * 32 : rank * 32 + 20].tolist()


@pytest.mark.parametrize("rank", [1, 4])
def test_entries_have_mean_zero_and_variance_one(rank: int) -> None:
    noise = LowRankNoise(1, ((40, 30),), rank)
    rows = np.stack([noise.direction(0, k) for k in range(400)])
    assert abs(rows.mean()) < 0.01
    assert abs(rows.var() - 1) < 0.05


def test_a_matrix_is_the_product_of_its_factors_over_the_root_of_the_rank() -> None:
    noise = LowRankNoise(3, ((2, 3),), rank=2)
    f = noise.factors(0, 0).astype(np.float64)
    a, b = f[:4].reshape(2, 2), f[4:].reshape(3, 2)
    np.testing.assert_allclose(noise.direction(0, 0).reshape(2, 3), a @ b.T / np.sqrt(2), atol=1e-6)


def test_the_weighted_sum_is_the_sum_of_weighted_directions_over_several_chunks() -> None:
    noise = LowRankNoise(0, SHAPES, 2)
    weights = np.random.default_rng(0).standard_normal(CHUNK + 9)
    expected = sum(w * noise.direction(1, k).astype(np.float64) for k, w in enumerate(weights))
    np.testing.assert_allclose(noise.weighted_sum(1, weights), expected, atol=5e-4)


def test_the_weighted_sum_has_the_same_bits_on_any_number_of_threads() -> None:
    noise, weights = LowRankNoise(0, ((300, 200),), 1), np.random.default_rng(0).standard_normal(500)
    threads, found = torch.get_num_threads(), set()
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            found.add(noise.weighted_sum(0, weights).tobytes())
    finally:
        torch.set_num_threads(threads)
    assert len(found) == 1


@pytest.mark.parametrize("rank", [1, 2])
def test_the_shared_forward_is_that_of_the_perturbed_networks(rank: int) -> None:
    network = MLP((11, 40, 24, 3))
    noise = LowRankNoise(0, tuple(network.shapes.values()), rank)
    theta = network.initial(np.random.default_rng(0))
    rows, full = SharedMLPRows(network, noise, 5), network.open(5)
    rows.set_center(theta)
    for row, scale in enumerate((0.3, -0.3, 0.0, 0.1, 0.2)):
        rows.load(row, 4, row, scale)
        perturb(noise, theta, scale, 4, row, full.parameters[row])
    inputs = np.random.default_rng(1).standard_normal((5, 11)).astype(np.float32)
    np.testing.assert_allclose(rows.forward(inputs), full.forward(inputs), atol=1e-5)


def test_a_rows_bits_in_the_shared_forward_depend_neither_on_the_batch_nor_on_its_place() -> None:
    network = MLP((17, 64, 64, 6))
    noise = LowRankNoise(0, tuple(network.shapes.values()), 1)
    theta = network.initial(np.random.default_rng(0))
    inputs = np.random.default_rng(1).standard_normal((70, 17)).astype(np.float32)

    def outputs(order: list[int]) -> list[bytes]:
        rows = SharedMLPRows(network, noise, len(order))
        rows.set_center(theta)
        for row, k in enumerate(order):
            rows.load(row, 0, k, 0.1)
        return [row.tobytes() for row in rows.forward(inputs[order])]

    alone = [outputs([k])[0] for k in range(70)]
    for order in (list(range(70)), list(range(69, -1, -1)), [5, 3, 60], list(range(33))):
        assert outputs(order) == [alone[k] for k in order]


def test_training_with_low_rank_noise_is_exact_and_differs_by_rank(tmp_path: Path) -> None:
    options = {"preset": None, "population": 12, "generations": 4, "hidden": (8,), "noise": "low-rank", "quiet": True}
    one = esker.train("CartPole-v1", run_dir=str(tmp_path / "a"), workers=0, slots=3, **options)  # type: ignore[arg-type]
    two = esker.train("CartPole-v1", run_dir=str(tmp_path / "b"), workers=2, **options)  # type: ignore[arg-type]
    other = esker.train("CartPole-v1", run_dir=str(tmp_path / "c"), workers=0, rank=2, **options)  # type: ignore[arg-type]
    assert center(one).tobytes() == center(two).tobytes() != center(other).tobytes()
