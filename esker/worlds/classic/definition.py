"""What a definition of a classic environment consists of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from esker.worlds.arrays import Array, Arrays

State = Sequence[Array]


class ClassicDefinition(Protocol):
    """One environment: its options are its fields, under the names of Gymnasium's keyword arguments."""

    arrays: Arrays
    variables: ClassVar[int]  # of a state
    observation_size: ClassVar[int]

    def start(self, random: np.random.Generator) -> Any:
        """The variables that one episode starts with."""
        ...

    def observe(self, state: State) -> State:
        """The columns of the observations; Gymnasium rounds them to float32."""
        ...

    def step(self, state: State, actions: Array) -> tuple[State, Array | float, Array | None]:
        """The state after one step, the rewards (a number: of every world), and which worlds terminated (None: none)."""
        ...
