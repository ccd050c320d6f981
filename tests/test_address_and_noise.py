"""Randomness by address: equal addresses give equal numbers everywhere, and no N×d matrix is formed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from esker.noise.address import Purpose, first_keys, key, keys
from esker.noise.counter import CounterNoise
from esker.noise.directions import perturb
from esker.noise.table import BLOCK, NoiseTable, TableNoise

SIZE = 200_000


@pytest.fixture(scope="module")
def table() -> NoiseTable:
    return NoiseTable.create(3, SIZE)


def noises(table: NoiseTable, dimension: int) -> list[TableNoise | CounterNoise]:
    return [TableNoise(table, 3, dimension), CounterNoise(3, dimension)]


@given(st.integers(0, 2**63), st.lists(st.integers(0, 2**40), min_size=1, max_size=4))
def test_vectorised_keys_equal_single_ones(seed: int, coordinates: list[int]) -> None:
    many = keys(seed, Purpose.EPISODE, 7, np.array(coordinates))
    assert many.tolist() == [key(seed, Purpose.EPISODE, 7, c) for c in coordinates]


def test_keys_of_nearby_addresses_do_not_collide() -> None:
    found = {
        key
        for seed in range(4)
        for purpose in (Purpose.EPISODE, Purpose.PERTURBATION)
        for generation in range(10)
        for key in keys(seed, purpose, generation, np.arange(500)).tolist()
    }
    assert len(found) == 4 * 2 * 10 * 500


def test_bits_of_keys_are_balanced() -> None:
    bits = np.unpackbits(keys(0, Purpose.EPISODE, np.arange(20_000)).view(np.uint8)).reshape(-1, 64)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 0.02


def test_coordinates_are_not_interchangeable() -> None:
    assert key(0, Purpose.EPISODE, 1, 2) != key(0, Purpose.EPISODE, 2, 1)


def test_tables_of_one_seed_are_equal_and_of_two_seeds_differ(table: NoiseTable) -> None:
    assert np.array_equal(table.values, NoiseTable.create(3, SIZE).values)
    assert not np.array_equal(table.values, NoiseTable.create(4, SIZE).values)


def test_a_table_does_not_depend_on_its_size() -> None:
    small, large = NoiseTable.create(1, BLOCK + 10), NoiseTable.create(1, BLOCK + 500_000)
    assert np.array_equal(small.values, large.values[: BLOCK + 10])


def test_directions_are_standard_normal(table: NoiseTable) -> None:
    for noise in noises(table, 2000):
        rows = np.stack([noise.direction(5, k) for k in range(50)])
        assert abs(rows.mean()) < 0.02
        assert abs(rows.std() - 1) < 0.02


def test_the_weighted_sum_is_the_sum_of_weighted_directions(table: NoiseTable) -> None:
    weights = np.random.default_rng(0).standard_normal(31)
    for noise in noises(table, 777):
        expected = sum(w * noise.direction(2, k).astype(np.float64) for k, w in enumerate(weights))
        np.testing.assert_allclose(noise.weighted_sum(2, weights), expected, rtol=0, atol=2e-5)


def test_perturbing_adds_the_scaled_direction(table: NoiseTable) -> None:
    for noise in noises(table, 100):
        center, out = np.arange(100, dtype=np.float32), np.empty(100, dtype=np.float32)
        perturb(noise, center, -0.5, 1, 4, out)
        assert np.array_equal(out, np.float32(-0.5) * noise.direction(1, 4) + center)


def test_the_weighted_sum_has_the_same_bits_on_1_2_and_4_threads() -> None:
    table = NoiseTable.create(0, 1_000_000)
    noise, weights = TableNoise(table, 0, 166_000), np.random.default_rng(1).standard_normal(64)
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            found.append(noise.weighted_sum(0, weights).tobytes())
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1] == found[2]


def test_a_table_smaller_than_the_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="too small for 1,000 parameters"):
        TableNoise(NoiseTable.create(0, 500), 0, 1000)


@pytest.mark.parametrize("kind", ["table", "counter"])
def test_an_update_needs_memory_of_order_d(kind: str) -> None:
    """N = 2,000 members of d = 1,000,000 parameters: the matrix would take 8 GB, the update may take a few rows."""
    members = 2000 if kind == "table" else 200
    program = f"""
import resource, numpy as np
from esker.strategies import OpenAIES
from esker.noise.counter import CounterNoise
from esker.noise.table import NoiseTable, TableNoise
d = 1_000_000
noise = TableNoise(NoiseTable.create(0, 4 * d), 0, d) if {kind!r} == "table" else CounterNoise(0, d)
es = OpenAIES(np.zeros(d, np.float32), population={members}, optimizer="sgd", noise=noise)
noise.weighted_sum(0, np.ones(2))
if {kind!r} == "table": noise.table.values.sum()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
es.tell(np.arange({members}, dtype=float))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    grown = int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
    assert grown < 20 * 4 * 1_000_000


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no /dev/shm on this system")
def test_a_killed_process_leaves_no_shared_memory_behind() -> None:
    before = set(os.listdir("/dev/shm"))
    program = "from esker.noise.table import NoiseTable; t = NoiseTable.create(0, 10**6); print('up', flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.1)
    assert not [name for name in set(os.listdir("/dev/shm")) - before if "esker" in name]


def test_first_keys_are_the_keys_of_the_first_numbers() -> None:
    for coordinates in ((), (7,), (2**40, 3)):
        expected = keys(5, Purpose.PERTURBATION, *coordinates, np.arange(50))
        assert np.array_equal(first_keys(50, 5, Purpose.PERTURBATION, *coordinates), expected)
