"""What a strategy is: ask for members, tell their fitness. Everything that evolves a centre goes through this protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from numpy.typing import ArrayLike

from esker.noise.population import Population


@dataclass(frozen=True)
class Update:
    """What one `tell` did, as the journal shows it."""

    gradient_norm: float  # of the estimate that moved the centre; of the mean step, in units of sigma, for the CMA kind
    update_norm: float
    center_norm: float
    sigma: float  # with which the told members were made; the mean over parameters where each has its own
    lr: float
    weight_entropy: float


class Strategy(Protocol):
    """Candidates by address, and how their fitness moves the centre. Knows nothing of environments, processes or files."""

    generation: int  # the generation that `ask` is about
    population: int  # members of a generation: the fewest that `tell` accepts

    @property
    def center(self) -> torch.Tensor:
        """The unperturbed candidate, a flat float32 vector on the CPU."""
        ...

    def ask(self, members: slice | None = None) -> Population:
        """This generation's members, or a slice of them."""
        ...

    def tell(self, fitness: ArrayLike | torch.Tensor) -> Update:
        """Move by the fitness of members 0, 1, … (higher is better, -inf: failed), of at least `population` of them."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes: tensors, numbers, and nested dictionaries of them."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        ...
