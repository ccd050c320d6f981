"""How many threads torch computes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def one_torch_thread(wanted: bool = True) -> Iterator[None]:
    """One torch thread inside this block, as in a worker process.

    Products and sums over several threads round differently; and torch's helper threads spin for milliseconds after each
    use, on cores that worker processes need.
    """
    before = torch.get_num_threads()
    if not wanted or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
