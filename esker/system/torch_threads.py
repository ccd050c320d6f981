"""How many threads torch computes on."""

from __future__ import annotations

import torch


class one_torch_thread:  # used as a function; a class costs a tenth of contextlib's generator
    """One torch thread inside this block, as in a worker process.

    Products and sums over several threads round differently; and torch's helper threads spin for milliseconds after each
    use, on cores that worker processes need.
    """

    __slots__ = ("before", "wanted")

    def __init__(self, wanted: bool = True) -> None:
        self.wanted = wanted
        self.before = 1

    def __enter__(self) -> None:
        self.before = torch.get_num_threads() if self.wanted else 1
        if self.before != 1:
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        if self.before != 1:
            torch.set_num_threads(self.before)
