"""One MLP for a few observations at once, in NumPy: what the hybrids roll an individual out with.

Weights are kept as (in + 1, out) with the bias as their last row, and every input ends with a one: a layer is one product
and one activation, in place; transposed, products of a few rows take 1.5 times as long. A product's bits depend
on how many observations there are, so equal bits need equal numbers of observations.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from esker.noise.directions import Vector
from esker.policies.mlp import MLP, activation_of
from esker.policies.network import Batch
from esker.system.memory import compact


class OneMLP:
    """An MLP's current parameters, and the buffers to run it with."""

    def __init__(self, network: MLP) -> None:
        self.network = network
        activation = activation_of(network.activation)
        self._activate: Any = activation if isinstance(activation, np.ufunc) else partial(_in_place, activation)
        self._weights = compact(*((a + 1, b) for a, b in pairwise(network.sizes)))
        self._last = self._weights[-1]
        self._one = self._plan(())
        self._some: dict[int, list[tuple[Batch, Batch, Batch]]] = {}

    def become(self, parameters: Vector) -> None:
        """Take over parameters."""
        for kept, (weight, bias) in zip(self._weights, self.network.layers(parameters), strict=True):
            kept[:-1], kept[-1] = weight.T, bias

    def _plan(self, rows: tuple[int, ...]) -> list[tuple[Batch, Batch, Batch]]:
        """Of each hidden layer the weights, and room for its outputs, without and with the ones."""
        plan = []
        for weight in self._weights[:-1]:
            outputs: Batch = np.ones((*rows, weight.shape[1] + 1), dtype=np.float32)
            plan.append((weight, outputs[..., :-1], outputs))
        return plan

    def forward(self, x: Batch) -> Batch:
        """Outputs for observations with a one behind each: (n, out) for (n, in + 1), or (out) for (in + 1)."""
        if x.ndim > 1:
            return self._forward_some(x)
        dot, activate = np.dot, self._activate
        for weight, free, outputs in self._one:
            dot(x, weight, free)
            activate(free, free)
            x = outputs
        return dot(x, self._last)

    def _forward_some(self, x: Batch) -> Batch:
        if len(x) not in self._some:
            self._some[len(x)] = self._plan((len(x),))
        for weight, free, outputs in self._some[len(x)]:
            np.matmul(x, weight, free)
            self._activate(free, free)
            x = outputs
        result: Batch = np.matmul(x, self._last)
        return result


def _in_place(activation: Any, x: Batch, out: Batch) -> None:
    out[:] = activation(x)
