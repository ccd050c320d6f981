"""The array functions that the definitions use, for NumPy here and for torch tensors in `torch_arrays`.

A definition is written once, over arrays with one world a row. In NumPy every function gives a row the bits that Gymnasium
computes for one environment; an operation whose bits differ for a single number is a separate function here.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

Array = Any  # a NumPy array or a torch tensor, one world a row


class Arrays(Protocol):
    """What a definition needs beyond operators, slices and comparisons."""

    def clip(self, values: Array, low: float, high: float) -> Array: ...
    def square(self, values: Array) -> Array: ...
    def power2(self, values: Array) -> Array:
        """The number to the power 2, as Python computes it of one number: not always the bits of its square."""
        ...

    def sum(self, values: Array) -> Array:
        """The sum of each row; the rest of the axes are one."""
        ...

    def norm(self, vectors: Array) -> Array:
        """The Euclidean length of each row."""
        ...

    def weighted_sum(self, weights: Array, points: Array) -> Array:
        """The sum over b of weights[b]·points[n, b, j]."""
        ...

    def sin(self, values: Array) -> Array: ...
    def cos(self, values: Array) -> Array: ...
    def library_cos(self, values: Array) -> Array:
        """The cosine of the C library, which Python's `math` calls."""
        ...

    def abs(self, values: Array) -> Array: ...
    def where(self, condition: Array, yes: Array | float, no: Array) -> Array: ...
    def all_finite(self, values: Array) -> Array:
        """Whether every number of a row is finite."""
        ...

    def all(self, values: Array) -> Array:
        """Whether every value of a row is true."""
        ...

    def constant(self, values: Any) -> Array:
        """Numbers of the model, as these functions take them."""
        ...


class NumpyArrays:
    """NumPy, with the bits of Gymnasium's own expressions."""

    def clip(self, values: Array, low: float, high: float) -> Array:
        return np.clip(values, low, high)

    def square(self, values: Array) -> Array:
        return np.square(values)

    def sin(self, values: Array) -> Array:
        return np.sin(values)

    def cos(self, values: Array) -> Array:
        return np.cos(values)

    def library_cos(self, values: Array) -> Array:
        return np.array([math.cos(value) for value in values.tolist()])

    def abs(self, values: Array) -> Array:
        return np.abs(values)

    def where(self, condition: Array, yes: Array | float, no: Array) -> Array:
        return np.where(condition, yes, no)

    def constant(self, values: Any) -> Array:
        return np.array(values)

    def power2(self, values: Array) -> Array:
        return np.array([value**2 for value in (values.tolist() if values.dtype == np.float64 else values)])

    def sum(self, values: Array) -> Array:
        return values.reshape(len(values), -1).sum(axis=1)

    def norm(self, vectors: Array) -> Array:
        return np.sqrt(np.vecdot(vectors, vectors))  # BLAS's dot product of each row, as numpy.linalg.norm has it

    def weighted_sum(self, weights: Array, points: Array) -> Array:
        return np.einsum("b,nbj->nj", weights, points)

    def all_finite(self, values: Array) -> Array:
        return np.isfinite(values).all(axis=1)

    def all(self, values: Array) -> Array:
        return values.all(axis=1)
