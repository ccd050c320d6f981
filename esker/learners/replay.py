"""The replay buffer: the last `capacity` transitions of a run, sampled on the device that trains.

On a CPU a batch is gathered from the shared memory in place; on another device the window is mirrored, and only new
rows travel. Nothing is pickled.
"""

from __future__ import annotations

import torch

from esker.learners.rows import Rows, SharedRows


class Replay:
    """The last `capacity` transitions of a run, sampled on the device that trains."""

    def __init__(self, rows: SharedRows, capacity: int, device: str | torch.device = "cpu", begin: int = 0) -> None:
        self.rows = rows
        self.capacity = capacity
        self.begin = begin  # transitions of the run before the first row, which were not kept
        self.device = torch.device(device)
        self.count = 0  # rows ever written
        self._uploaded = 0
        self._tensor = torch.empty((0, rows.width))

    def append(self, rows: Rows) -> None:
        """Write rows behind the others."""
        self.rows.reserve(self.count, self.count + len(rows))
        self.rows.first(self.count + len(rows))[self.count :] = rows
        self.count += len(rows)

    def see(self, count: int) -> None:
        """Another process has written `count` of the run's transitions."""
        self.count = count - self.begin

    def window(self) -> tuple[torch.Tensor, int, int]:
        """A tensor on the device, and the range of its rows to sample from."""
        first = max(0, self.count - self.capacity)
        if self.device.type == "cpu":
            view = self.rows.first(self.count)
            if self._tensor.shape[0] < self.count:
                self._tensor = torch.from_numpy(self.rows.mapped)
            return self._tensor, first, len(view)
        return self._mirror(first)

    def _mirror(self, first: int) -> tuple[torch.Tensor, int, int]:
        """The window as a ring on the device; only rows that are new there travel."""
        if not len(self._tensor):
            self._tensor = torch.zeros((self.capacity, self.rows.width), device=self.device)
        start = max(self._uploaded, first)
        fresh = torch.from_numpy(self.rows.first(self.count)[start:])
        at = start % self.capacity
        head = min(len(fresh), self.capacity - at)
        self._tensor[at : at + head].copy_(fresh[:head])
        self._tensor[: len(fresh) - head].copy_(fresh[head:])
        self._uploaded = self.count
        return self._tensor, 0, min(self.count, self.capacity)
