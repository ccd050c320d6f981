"""Randomness by address: every random choice is a pure function of where it is used.

An address is `(run seed, purpose, coordinates…)`. Nothing is drawn from a shared stream, so a result never depends on
who computed it, when, or after what.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from threading import local

import numpy as np
from numpy.typing import ArrayLike, NDArray

UINT64 = 2**64
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, the increment of splitmix64
_FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_SHIFTS = 30, 27, 31
_FACTOR_1, _FACTOR_2, _SHIFT_1, _SHIFT_2, _SHIFT_3 = (np.uint64(number) for number in (*_FACTORS, *_SHIFTS))


class Purpose(IntEnum):
    """What a random number is for; part of its address, never renumbered."""

    INITIAL = 0
    PERTURBATION = 1
    EPISODE = 2
    CENTER_EPISODE = 3
    ACTION_NOISE = 4
    TABLE = 5
    STATISTICS = 6
    EVALUATION = 7
    FUNCTION = 8
    REFERENCE = 9
    RESTART = 15
    LEARNING = 70  # the gradient half: batches, smoothing, exploration, shares
    CRITIC = 71
    EXPLORATION = 72
    WARM_UP = 73
    SHARE = 74


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection in which every input bit moves every output bit."""
    x = (x ^ (x >> _SHIFT_1)) * _FACTOR_1
    x = (x ^ (x >> _SHIFT_2)) * _FACTOR_2
    return x ^ (x >> _SHIFT_3)


def _mix_integer(x: int) -> int:
    x = ((x ^ (x >> _SHIFTS[0])) * _FACTORS[0]) % UINT64
    x = ((x ^ (x >> _SHIFTS[1])) * _FACTORS[1]) % UINT64
    return x ^ (x >> _SHIFTS[2])


def keys(seed: int, purpose: Purpose, *coordinates: ArrayLike) -> NDArray[np.uint64]:
    """64 random bits for each address; coordinates are non-negative integers or arrays of them, broadcast together."""
    single = next((i for i, c in enumerate(coordinates) if not isinstance(c, int)), len(coordinates))
    prefix: list[int] = [int(seed), int(purpose), *coordinates[:single]]  # type: ignore[list-item]
    state = np.array([_state(*prefix)], dtype=np.uint64)
    for coordinate in coordinates[single:]:
        part = np.atleast_1d(np.asarray(coordinate, dtype=np.uint64))
        state = _mix(state * np.uint64(5) + _mix(part + np.uint64(_GOLDEN)))
    return state


def first_keys(count: int, seed: int, purpose: Purpose, *coordinates: int) -> NDArray[np.uint64]:
    """`keys` of the addresses whose last coordinate is 0, 1, …, count - 1."""
    state = _state(int(seed), int(purpose), *coordinates) * 5 % UINT64
    return _mix(_mixed_numbers(count) + np.uint64(state))


@lru_cache(maxsize=8)
def _mixed_numbers(count: int) -> NDArray[np.uint64]:
    return _mix(np.arange(count, dtype=np.uint64) + np.uint64(_GOLDEN))


def key(seed: int, purpose: Purpose, *coordinates: int) -> int:
    """64 random bits for one address: `keys` in plain integers, which for a single address is ten times as fast."""
    return _state(int(seed), int(purpose), *map(int, coordinates))


@lru_cache(maxsize=64)  # the addresses of a generation begin alike
def _state(*address: int) -> int:
    if len(address) == 1:
        return _mix_integer((address[0] + _GOLDEN) % UINT64)
    return _mix_integer((_state(*address[:-1]) * 5 + _mix_integer((address[-1] + _GOLDEN) % UINT64)) % UINT64)


def episode_seed(seed: int, purpose: Purpose, *coordinates: int) -> int:
    """A seed for `env.reset`, in the range every environment accepts."""
    return key(seed, purpose, *coordinates) >> 33


def generator(seed: int, purpose: Purpose, *coordinates: int) -> np.random.Generator:
    """A counter-based generator that belongs to one address."""
    return np.random.Generator(np.random.Philox(key=key(seed, purpose, *coordinates)))


class _Drawer(local):
    """One generator per thread, moved to an address for each draw: making a new one takes longer than a short draw."""

    def __init__(self) -> None:
        self.philox = np.random.Philox(key=0)
        self.generator = np.random.Generator(self.philox)
        self.state = self.philox.state


_drawer = _Drawer()


def normals(count: int, seed: int, purpose: Purpose, *coordinates: int) -> NDArray[np.float32]:
    """The first float32 normals of `generator(seed, purpose, *coordinates)`."""
    out = np.empty(count, dtype=np.float32)
    fill_normals([out], [key(seed, purpose, *coordinates)])
    return out


def fill_normals(rows: Iterable[NDArray[np.float32]], addresses: Iterable[int]) -> None:
    """Fill each row with the first normals of its address, given as a key."""
    philox, draw, state = _drawer.philox, _drawer.generator.standard_normal, _drawer.state
    for row, address in zip(rows, addresses, strict=True):
        state["state"]["key"][0] = address
        philox.state = state
        draw(dtype=np.float32, out=row)
