"""Memory for what is read at every step: on huge pages, where the system has them.

A worker reads its actor's parameters between two steps of a simulator whose data wants the same cache. Ordinary pages lie
anywhere, so that some sets of the cache overflow while others are empty; a huge page is one piece.
"""

from __future__ import annotations

import contextlib
import mmap
from math import prod

import numpy as np
from numpy.typing import NDArray

HUGE = 1 << 21  # bytes of a huge page
LINE = 64  # of a line of the cache


def compact(*shapes: tuple[int, ...]) -> list[NDArray[np.float32]]:
    """Arrays of zeros, float32, one behind the other from the beginning of a huge page."""
    sizes = [-(-4 * prod(shape) // LINE) * LINE for shape in shapes]
    memory = mmap.mmap(-1, -(-sum(sizes) // HUGE) * HUGE + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(AttributeError, OSError):  # only Linux has the word, and not every kernel the pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    whole = np.frombuffer(memory, dtype=np.uint8)
    at = -whole.ctypes.data % HUGE
    arrays: list[NDArray[np.float32]] = []
    for shape, size in zip(shapes, sizes, strict=True):
        arrays.append(whole[at : at + 4 * prod(shape)].view(np.float32).reshape(shape))
        at += size
    return arrays
