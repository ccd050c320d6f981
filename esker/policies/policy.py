"""A trained policy: observation in, action out."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from esker.errors import UsageError
from esker.noise.directions import Vector
from esker.policies.heads import Head
from esker.policies.network import Inputs, Network, Rows
from esker.policies.normalizer import Normalizer
from esker.system.blas import one_blas_thread


class Policy:
    """Acts with fixed parameters, by the same computation as in training."""

    def __init__(
        self, network: Network, head: Head, center: Vector, normalizer: Normalizer | None, space: gym.Space[Any]
    ) -> None:
        self.network = network
        self.head = head
        self.normalizer = normalizer
        self.observation_space = space
        self._rows = self._open(center, 1)
        self._batch = self._rows  # of the last batch: as many rows as it had observations
        self._batch_rows = 1
        self.reset()

    @property
    def parameters(self) -> Vector:
        """The flat parameters, in the order of the equivalent torch module's."""
        return self._rows.parameters[0].copy()

    def reset(self, row: int | None = None) -> None:
        """Start an episode: reset the recurrent state, if the network has any; of a batch, in one row or in all."""
        with one_blas_thread():
            self._rows.start(0)
            for number in range(self._batch_rows) if row is None else (row,):
                self._batch.start(number)

    def act(self, observation: Any) -> Any:
        """The action for one observation, as the environment gives it, or the actions for a batch of them, row by row.

        A batch is an array of observations; each action is the one that its observation gets alone. A network with memory
        remembers per row of a batch, as long as batches are of one size. Another shape raises ValueError.
        """
        batched = self._is_batch(observation)
        inputs = self._inputs(observation if batched else [observation])
        if inputs.shape[1:] != self.network.input_shape:
            raise ValueError(f"observation has shape {inputs.shape[1:]}; expected {self.network.input_shape}")
        if np.isnan(inputs).any():
            raise UsageError("the observation holds NaN; expected numbers")
        if self.normalizer is not None:
            inputs = self.normalizer(inputs)
        rows = self._rows_for(len(inputs)) if batched else self._rows
        with one_blas_thread():
            actions = self.head(rows.forward(inputs))
        return actions if batched else actions[0]

    def _open(self, center: Vector, count: int) -> Rows:
        rows = self.network.open(count)
        rows.parameters[:] = center
        return rows

    def _rows_for(self, count: int) -> Rows:
        if count != self._batch_rows or self._batch is self._rows:
            self._batch, self._batch_rows = self._open(self._rows.parameters[0], count), count
            with one_blas_thread():
                for row in range(count):
                    self._batch.start(row)
        return self._batch

    def _is_batch(self, observation: Any) -> bool:
        """Whether there is one axis more than an observation has. Dictionaries and tuples are single observations."""
        space = self.observation_space
        if not isinstance(observation, np.ndarray | list) or space.shape is None:
            return False
        return np.ndim(observation) == len(space.shape) + 1

    def _inputs(self, observations: Any) -> Inputs:
        """What the network is given: images as bytes, everything else as rows of numbers."""
        if len(self.network.input_shape) > 1:
            return np.asarray(observations, dtype=np.uint8)
        flatten = gym.spaces.utils.flatten
        flat = [np.asarray(flatten(self.observation_space, one), dtype=np.float64) for one in observations]
        rows = np.array(flat).reshape(len(flat), -1)
        return rows.astype(np.float32) if self.normalizer is None else rows
