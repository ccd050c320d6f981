"""Noise on actions as tensors: normals by the address of an episode, the number of its step, and the action's number.

The numbers are not those that worker processes draw from NumPy's generators; they are as independent of rows and
neighbours.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

GOLDEN, FIRST, SECOND = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of splitmix64
BITS = 24  # of each uniform number


class ActionNoise:
    """The noise of all rows; one whose scale is 0 has none."""

    def __init__(self, rows: int, size: int, device: torch.device) -> None:
        self.keys, self.age = torch.zeros(2, rows, 1, dtype=torch.int64, device=device).unbind()
        self.scale = torch.zeros(rows, 1, device=device)
        self._numbers = torch.arange(1, size + 1, device=device)

    def start(self, rows: torch.Tensor, keys: NDArray[np.uint64], scales: NDArray[np.float32]) -> None:
        """Begin episodes with these keys and standard deviations."""
        device = self.keys.device
        self.keys[rows, 0] = torch.from_numpy(keys.view(np.int64)).to(device)
        self.scale[rows, 0] = torch.from_numpy(scales).to(device)
        self.age[rows] = 0

    def draw(self) -> torch.Tensor:
        """The noise of the next step, (rows, size)."""
        bits = mix(self.keys + (self.age * len(self._numbers) + self._numbers) * signed(GOLDEN))
        self.age += 1
        first, second = logical(bits, 64 - BITS), bits & (2**BITS - 1)
        radius = torch.sqrt(-2 * torch.log((first.float() + 1) / 2**BITS))
        return self.scale * radius * torch.cos(2 * math.pi * second.float() / 2**BITS)


def mix(x: torch.Tensor) -> torch.Tensor:
    """The finaliser of splitmix64 on int64: every input bit moves every output bit."""
    x = (x ^ logical(x, 30)) * signed(FIRST)
    x = (x ^ logical(x, 27)) * signed(SECOND)
    return x ^ logical(x, 31)


def logical(x: torch.Tensor, by: int) -> torch.Tensor:
    """x shifted to the right as an unsigned number."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def signed(number: int) -> int:
    """An unsigned number of 64 bits as the signed one with the same bits."""
    return number - (1 << 64) if number >= 1 << 63 else number
