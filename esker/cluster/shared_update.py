"""The update shared out over the nodes: each adds up some coordinates of the weighted sum, from its own noise table.

Every coordinate is summed in the same order wherever that happens, so the bits are those of a single machine.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from esker.engines.ray import RayEngine
from esker.noise.directions import Vector, Weights
from esker.noise.table import TableNoise

MESSAGE = 4_000_000  # products that a node adds up in the time that the coordinator needs to ask one (1.1 ms)
ALIGN = 64  # ranges begin on multiples of this, so that vectorised loops have their remainder where the whole sum has it
WITHIN = 30.0  # seconds for a node to answer, after which its part is computed here


@dataclass(frozen=True)
class SharedNoise:
    """A table's noise whose weighted sums are computed by a cluster's nodes."""

    noise: TableNoise
    engine: RayEngine
    message: int = MESSAGE

    @property
    def dimension(self) -> int:
        """How many parameters a direction has."""
        return self.noise.dimension

    def direction(self, generation: int, number: int) -> Vector:
        """ε as a read-only row."""
        return self.noise.direction(generation, number)

    def weighted_sum(self, generation: int, weights: Weights) -> Vector:
        """Σ weights[k]·εₖ: by as many nodes as make it fastest; what a lost node owes is computed here."""
        import ray

        nodes = self.engine.nodes[: self._parts(int(np.count_nonzero(weights)) * self.dimension)]
        if len(nodes) < 2:
            return self.noise.weighted_sum(generation, weights)
        reference = ray.put(weights)
        total = np.empty(self.dimension, dtype=np.float32)
        calls: list[tuple[int, int, Any]] = [
            (start, stop, node.actor.partial_sum.remote(self.engine.epoch, generation, [reference], start, stop))
            for node, (start, stop) in zip(nodes, ranges(self.dimension, len(nodes)), strict=True)
        ]
        for start, stop, call in calls:
            try:
                total[start:stop] = ray.get(call, timeout=WITHIN)
            except ray.exceptions.RayError:
                total[start:stop] = self.noise.partial_sum(generation, weights, start, stop)
        return total

    def weighted_moments(self, generation: int, linear: Weights, square: Weights) -> tuple[Vector, Vector]:
        """Σ linear[k]·εₖ and Σ square[k]·εₖ², computed here."""
        return self.noise.weighted_moments(generation, linear, square)

    def _parts(self, products: int) -> int:
        """n nodes take products/n for their sums and n messages: least for n = √(products/message)."""
        return math.isqrt(products // self.message)


def ranges(dimension: int, parts: int) -> list[tuple[int, int]]:
    """Even ranges of coordinates, on aligned bounds."""
    bounds = [dimension * part // parts // ALIGN * ALIGN for part in range(parts)] + [dimension]
    return list(itertools.pairwise(bounds))


def share_update(state: Any, engine: RayEngine) -> None:
    """Let a state's updates be computed by the engine's nodes, where its noise is in their tables."""
    noise = state.strategy.noise
    if isinstance(noise, TableNoise):
        state.strategy.noise = SharedNoise(noise, engine)
