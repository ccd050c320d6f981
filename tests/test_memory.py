"""Arrays on huge pages, and how the benchmark counts memory."""

from __future__ import annotations

import mmap
import os

import numpy as np
import pytest

from esker.bench.memory import MEASURABLE, private
from esker.noise.table import anonymous_memory
from esker.system.memory import HUGE, LINE, compact


def test_arrays_follow_each_other_from_the_beginning_of_a_huge_page():
    arrays = compact((3, 5), (7,), (HUGE // 4,), (2, 2))  # together more than a page
    assert arrays[0].ctypes.data % HUGE == 0
    for array, shape in zip(arrays, [(3, 5), (7,), (HUGE // 4,), (2, 2)], strict=True):
        assert array.shape == shape
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        assert array.ctypes.data % LINE == 0
        assert not array.any()
    for number, array in enumerate(arrays):
        array[:] = number
    assert [set(array.ravel()) for array in arrays] == [{0.0}, {1.0}, {2.0}, {3.0}]


def test_a_kernel_without_huge_pages_gives_ordinary_ones(monkeypatch):
    monkeypatch.setattr("mmap.MADV_HUGEPAGE", -1, raising=False)
    assert not compact((3, 5))[0].any()


def test_arrays_outlive_the_call_that_made_them():
    arrays = [compact((1000,))[0] for _ in range(50)]
    for number, array in enumerate(arrays):
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(arrays))


@pytest.mark.skipif(not MEASURABLE, reason="only Linux says what belongs to whom")
def test_the_benchmark_counts_what_a_process_keeps_and_not_what_it_reads_of_the_shared_table():
    size = 16 << 20
    before = private(os.getpid())
    table = mmap.mmap(anonymous_memory(size), size)
    table[:: mmap.PAGESIZE] = bytes(size // mmap.PAGESIZE)
    assert private(os.getpid()) - before < size / 4
    own = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    own[:: mmap.PAGESIZE] = bytes(size // mmap.PAGESIZE)
    assert private(os.getpid()) - before > size * 3 / 4
