"""A trained policy: observation in, action out."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from esker.noise.directions import Row
from esker.policies.heads import Head
from esker.policies.network import Inputs, Network
from esker.policies.normalizer import Normalizer
from esker.policies.observations import is_image
from esker.system.blas import one_thread


class Policy:
    """Acts with fixed parameters, by the very computation that training used."""

    def __init__(
        self, network: Network, head: Head, center: Row, normalizer: Normalizer | None, space: gym.Space[Any]
    ) -> None:
        self.network = network
        self.head = head
        self.normalizer = normalizer
        self.observation_space = space
        self._rows = network.open(1)
        self._rows.parameters[0] = center
        self.reset()

    @property
    def parameters(self) -> Row:
        """The flat parameters, in the order of the equivalent torch module's."""
        return self._rows.parameters[0].copy()

    def reset(self) -> None:
        """Begin an episode: forget recurrent state, if the network has any."""
        with one_thread():
            self._rows.start(0)

    def act(self, observation: Any) -> Any:
        """The action for one observation, as the environment gives it. Another shape raises ValueError."""
        if is_image(self.observation_space):
            inputs: Inputs = np.asarray(observation, dtype=np.uint8)[None]
        else:
            flat = np.asarray(gym.spaces.utils.flatten(self.observation_space, observation), dtype=np.float64).reshape(1, -1)
            inputs = flat.astype(np.float32) if self.normalizer is None else flat
        if inputs.shape[1:] != self.network.input_shape:
            raise ValueError(f"observation has shape {inputs.shape[1:]}; expected {self.network.input_shape}")
        if self.normalizer is not None:
            inputs = self.normalizer(inputs)
        with one_thread():
            return self.head(self._rows.forward(inputs))[0]
