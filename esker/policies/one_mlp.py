"""One MLP for a few observations at once, in NumPy: what the hybrids roll an individual out with.

Weights are kept as (in, out) with the bias as their last row, and every input ends with a one: a layer is one product and
one activation, in place. A product's bits depend on how many observations there are, so whoever needs equal bits must
ask for equal numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from esker.noise import Row
from esker.policies.mlp import ACTIVATIONS, MLP
from esker.policies.network import Batch


class OneMLP:
    """An MLP's current parameters, and the buffers to run it with."""

    def __init__(self, network: MLP) -> None:
        self.network = network
        self._activation = ACTIVATIONS[network.activation]
        self._weights: list[Batch] = [np.empty((a + 1, b), dtype=np.float32) for a, b in pairwise(network.sizes)]
        self._rooms: dict[int, list[tuple[Batch, Batch]]] = {}

    def become(self, parameters: Row) -> None:
        """Take parameters on."""
        at = 0
        for weight in self._weights:
            fan_in, fan_out = weight.shape[0] - 1, weight.shape[1]
            weight[:-1] = parameters[at : at + fan_in * fan_out].reshape(fan_out, fan_in).T
            at += fan_in * fan_out
            weight[-1] = parameters[at : at + fan_out]
            at += fan_out

    def _room(self, rows: int) -> list[tuple[Batch, Batch]]:
        """Each layer's inputs for so many observations: with the ones behind them, and without."""
        if rows not in self._rooms:
            shapes = [(rows, size + 1) if rows > 1 else (size + 1,) for size in self.network.sizes[:-1]]
            whole: list[Batch] = [np.ones(shape, dtype=np.float32) for shape in shapes]
            self._rooms[rows] = [(inputs, inputs[..., :-1]) for inputs in whole]
        return self._rooms[rows]

    def forward(self, observations: Batch) -> Batch:
        """Outputs (n, out) for observations (n, in)."""
        rows, activation = len(observations), self._activation
        product: Any = np.matmul if rows > 1 else np.dot  # of vectors, the quicker one
        *hidden, last = self._weights
        (x, free), *room = self._room(rows)
        free[:] = observations
        for weight, (following, free) in zip(hidden, room, strict=True):
            product(x, weight, out=free)
            if type(activation) is np.ufunc:
                activation(free, out=free)
            else:
                free[:] = activation(free)
            x = following
        outputs: Batch = product(x, last)
        return outputs.reshape(rows, -1)
