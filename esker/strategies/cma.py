"""CMA-ES (Hansen 2016, "The CMA Evolution Strategy: A Tutorial"): a Gaussian with a full covariance matrix.

The covariance is factored by Cholesky and the step-size path is kept in the coordinates of the factor (Krause, Arbonès,
Igel 2016), so neither eigenvectors nor an inverse are needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from esker.noise.correlated import CorrelatedPopulation
from esker.strategies.arguments import (
    NoiseArgument,
    fitness_of,
    members_of,
)
from esker.strategies.cma_parts import Distribution, Floats, Settings, by_fitness, settings, tells_nothing
from esker.strategies.stopping import CONDITION, TOLERANCE
from esker.strategies.strategy import Update
from esker.system.torch_threads import one_torch_thread

MOST = 5000  # parameters; the covariance of more takes over 200 MB, and minutes to learn


class CMA(Distribution):
    """A centre m, a step size σ and a covariance C = AAᵀ. Members are m + σ·Aεᵢ; with yᵢ = Aεᵢ and recombination weights w

        m ← m + lr·σ Σ wᵢyᵢ        C ← (1 - c₁ - c_μ)·C + c₁·p_c p_cᵀ + c_μ Σ wᵢ yᵢyᵢᵀ

    and σ follows the length of its evolution path. With `active` the worse half has negative weights in C. `population` is
    4 + ⌊3 ln d⌋ unless given. Bad arguments raise ValueError.
    """

    def __init__(
        self,
        center: ArrayLike | torch.Tensor,
        *,
        population: int | None = None,
        sigma: float = 0.3,
        lr: float = 1.0,
        active: bool = False,
        seed: int = 0,
        noise: NoiseArgument = "counter",
    ) -> None:
        super().__init__(center, population, sigma, lr, seed, noise)
        dimension = len(self._center)
        if dimension > MOST:
            raise ValueError(f"center has {dimension:,} parameters; CMA-ES takes at most {MOST:,}; use SepCMA (sep-cma)")
        self.active = active
        self.covariance = torch.eye(dimension, dtype=torch.float64)
        self._factored_at = 0
        self._factor = torch.eye(dimension, dtype=torch.float32)
        self._asked: CorrelatedPopulation | None = None  # the present generation's members

    def ask(self, members: slice | None = None) -> CorrelatedPopulation:
        """This generation's members, or a slice of them."""
        chosen, asked = members_of(members, self.population), self._asked
        if asked is None or (asked.generation, asked.scale) != (self.generation, self.sigma):
            center, transform, whole = self.center.numpy(), self._factor.numpy(), range(self.population)
            asked = CorrelatedPopulation(center, self.sigma, self.generation, False, self.noise, whole, transform)
            self._asked = asked
        return asked if members is None else asked.select(chosen)

    def tell(self, fitness: ArrayLike | torch.Tensor) -> Update:
        """Move the distribution by the fitness of members 0, 1, … (higher is better, -inf: failed)."""
        values = fitness_of(fitness, self.population, antithetic=False)
        flat, sigma, members = tells_nothing(values), self.sigma, len(values)
        self._history.add(values)
        if flat:
            self.generation += 1
            return self._no_update()
        s = settings(len(self._center), members)
        weights = by_fitness(values, s.weights)
        z, y = (rows.astype(np.float64) for rows in self.ask().steps(range(members)))
        step = (weights[:, None] * y).sum(axis=0)
        moved = (self.lr * sigma * step).astype(np.float32)
        self._center = torch.from_numpy(self._center.numpy() + moved)
        factor, kept = self._paths.advance(s, (weights[:, None] * z).sum(axis=0), step)
        self.sigma = sigma * factor
        self.generation += 1
        self._adapt(s, by_fitness(values, s.active) if self.active else weights, kept, z, y)
        return self._update(sigma, step, moved, weights)

    def _adapt(self, s: Settings, weights: Floats, kept: float, z: Floats, y: Floats) -> None:
        """Move the covariance, and factor it when it has moved enough to matter (about every 1/(10d(c₁ + c_μ)) tells)."""
        used = np.flatnonzero(weights)
        decay = 1 - s.c_1 - s.c_mu * float(weights.sum()) + kept
        pull = s.c_mu * weights[used]
        lengths = np.square(z[used]).sum(axis=1)
        pull[pull < 0] *= z.shape[1] / lengths[pull < 0]  # negative updates are limited whatever the length of y
        rows = torch.tensor(np.vstack([y[used], self._paths.p_c]))
        pulls = torch.tensor(np.append(pull, s.c_1))
        with one_torch_thread():  # a product's bits may depend on how many threads share it
            self.covariance.addmm_((rows * pulls[:, None]).T, rows, beta=decay)
            if self._due(s):
                self._refactor()

    def _due(self, s: Settings) -> bool:
        return (self._paths.updates - self._factored_at) * 10 * len(self._center) * (s.c_1 + s.c_mu) >= 1

    def _refactor(self) -> None:
        factor, failed = torch.linalg.cholesky_ex(self.covariance)
        if not failed:  # otherwise the last factor stays in use, and `stopped` reports it
            # Row by row, as a snapshot has it: the bits of a product depend on the layout, and Cholesky's goes by columns.
            self._factor, self._factored_at = factor.float().contiguous(), self._paths.updates

    @property
    def stopped(self) -> str | None:
        """Why this distribution cannot improve any further, or None."""
        lengths, pivots = self.covariance.diagonal().sqrt().numpy(), self._factor.diagonal()
        if self.sigma * float(lengths.max()) < TOLERANCE * self.first_sigma:
            return f"sigma fell below {TOLERANCE} of {self.first_sigma}"
        indefinite = self._due(settings(len(lengths), self.population))  # a factor that is due after `tell` has failed
        if indefinite or float(pivots.max()) > float(pivots.min()) * CONDITION**0.5:
            return f"the condition number of the covariance exceeds {CONDITION:.0e}"
        center = self._center.numpy()
        if (center + (0.2 * self.sigma * lengths).astype(np.float32) == center).any():
            return "sigma is too small to move the centre"
        return self._history.verdict(self.population)

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes; the factor too, because it is older than the covariance."""
        factor = {"factor": self._factor.clone(), "factored_at": self._factored_at}
        return super().state_dict() | {"covariance": self.covariance.clone(), **factor}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        super().load_state_dict(state)
        self.covariance, self._factor = (torch.as_tensor(state[name]).clone() for name in ("covariance", "factor"))
        self._factored_at, self._asked = int(state["factored_at"]), None
