"""Normals by address on any device: the bits are the same on a CPU, on a GPU and in any chunk of directions.

Direction k of a generation has a 64-bit key. Word j of its stream is splitmix64 of key + (j+1)·φ, and each of its four
16-bit parts picks one of 65,536 equally likely quantiles of the normal distribution. Integer arithmetic and table lookups
give the same bits everywhere; logarithms and cosines do not.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np
import torch

from esker.noise.address import Purpose, keys

LEVELS = 1 << 16
WORDS = 1 << 24  # 64-bit words that are held at once
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)  # as int64, whose products wrap as those of uint64 do
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)


def normals(seed: int, generation: int, directions: range, count: int, device: torch.device) -> torch.Tensor:
    """(directions, count) float32 normals; a number depends on its address alone."""
    out = torch.empty(len(directions), count, device=device)
    words = -(-count // 4)
    counter = (torch.arange(1, words + 1, device=device) * _GOLDEN)[None]
    table = _table(device)
    step = max(1, WORDS // words)
    for start in range(0, len(directions), step):
        chosen = np.asarray(directions[start : start + step], dtype=np.uint64)
        key = keys(seed, Purpose.PERTURBATION, generation, chosen).view(np.int64)
        drawn = _mix(torch.from_numpy(key).to(device)[:, None] + counter)
        index = drawn.view(torch.int16)[:, :count].to(torch.int32).add_(LEVELS // 2)
        out[start : start + step] = table.index_select(0, index.reshape(-1)).view(len(chosen), count)
    return out


def _mix(x: torch.Tensor) -> torch.Tensor:
    """The finaliser of splitmix64; torch shifts signed numbers arithmetically, so the sign's copies are masked away."""
    x = (x ^ ((x >> 30) & ((1 << 34) - 1))) * _FIRST
    x = (x ^ ((x >> 27) & ((1 << 37) - 1))) * _SECOND
    return x ^ ((x >> 31) & ((1 << 33) - 1))


@lru_cache(maxsize=8)
def _table(device: torch.device) -> torch.Tensor:
    return _quantiles().to(device)


@lru_cache(maxsize=1)
def _quantiles() -> torch.Tensor:
    """The middles of 65,536 equally likely parts of the normal distribution, scaled to a variance of exactly one."""
    normal = NormalDist()
    upper = np.array([normal.inv_cdf((i + 0.5) / LEVELS) for i in range(LEVELS // 2, LEVELS)])
    values = np.concatenate([-upper[::-1], upper])
    return torch.from_numpy((values / np.sqrt((values**2).mean())).astype(np.float32))


def uniforms(seed: int, generation: int, directions: range, count: int, device: torch.device) -> torch.Tensor:
    """(directions, count) float32 numbers from [0, 1), 24 bits each, for choices rather than perturbations."""
    counter = (torch.arange(1, count + 1, device=device) * _GOLDEN)[None]
    chosen = np.asarray(directions, dtype=np.uint64)
    key = keys(seed, Purpose.ACTION_NOISE, generation, chosen).view(np.int64)
    drawn = _mix(torch.from_numpy(key).to(device)[:, None] + counter)
    return ((drawn >> 40) & ((1 << 24) - 1)).float() * 2.0**-24
