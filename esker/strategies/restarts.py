"""Restarts for the CMA kind: IPOP (Auger & Hansen 2005) doubles the population, BIPOP (Hansen 2009) varies it."""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike

from esker.noise.address import Purpose, generator
from esker.noise.population import Population
from esker.strategies.strategy import Strategy, Update

RestartKind = Literal["ipop", "bipop"]


class Restartable(Strategy, Protocol):
    """A strategy that knows when it cannot improve any further."""

    sigma: float

    @property
    def stopped(self) -> str | None:
        """Why, or None."""
        ...


class Restarts:
    """Begin again elsewhere, with another population, whenever a strategy of the CMA kind has stopped.

    `make(**changes)` makes a strategy, changed in `center`, `population` or `sigma`, as
    `partial(CMA, center=torch.zeros(10), sigma=2.0)` does. A restart's centre is the first one plus `spread` (by default
    the first sigma) times normal noise. Restart r has its own address, so equal seeds restart alike; generations
    keep counting, so that no perturbation is used twice. Bad arguments raise ValueError.
    """

    antithetic = False

    def __init__(
        self,
        make: Callable[..., Restartable],
        *,
        kind: RestartKind = "ipop",
        restarts: int = 9,
        spread: float | None = None,
        seed: int = 0,
    ) -> None:
        if kind not in ("ipop", "bipop"):
            raise ValueError(f"kind is {kind!r}; expected 'ipop' or 'bipop'")
        if restarts < 0:
            raise ValueError(f"restarts is {restarts}; expected 0 or more")
        self.strategy = make()
        if not hasattr(self.strategy, "stopped"):
            raise ValueError(f"{type(self.strategy).__name__} never stops; restarts are for CMA and SepCMA")
        self.kind, self.restarts, self.seed = kind, restarts, seed
        self._make = make
        self._start = self.strategy.center.clone()
        self._first_population, self._first_sigma = self.strategy.population, self.strategy.sigma
        self.spread = self._first_sigma if spread is None else spread
        self.restart = 0  # how many there were
        self.large = True  # whether the present one counts as BIPOP's regime of large populations
        self.doublings = 0
        self.spent = {True: 0, False: 0}  # members told since the first restart, by regime
        self._begun_with = (self._first_population, self._first_sigma)
        self.generation, self.population = self.strategy.generation, self.strategy.population

    @property
    def center(self) -> torch.Tensor:
        """The current strategy's centre."""
        return self.strategy.center

    @property
    def sigma(self) -> float:
        """The current strategy's step size."""
        return self.strategy.sigma

    @property
    def stopped(self) -> str | None:
        """Why the last restart that was allowed cannot improve any further, or None."""
        return self.strategy.stopped if self.restart == self.restarts else None

    def ask(self, members: slice | None = None) -> Population:
        """This generation's members, or a slice of them."""
        return self.strategy.ask(members)

    def tell(self, fitness: ArrayLike | torch.Tensor) -> Update:
        """Tell the current strategy, and begin again if it has stopped."""
        members = len(fitness)  # type: ignore[arg-type]
        if self.generation == 0:
            self._start = self.center.clone()  # a warm start has put it elsewhere since
        update = self.strategy.tell(fitness)
        if self.restart:
            self.spent[self.large] += members
        self.generation = self.strategy.generation
        if self.restart < self.restarts and self.strategy.stopped:
            self._again()
        return update

    def _again(self) -> None:
        self.restart += 1
        random = generator(self.seed, Purpose.RESTART, self.restart)
        noise = random.standard_normal(len(self._start), dtype=np.float32)
        center = self._start + torch.from_numpy(np.float32(self.spread) * noise)
        self.large = self.kind == "ipop" or self.spent[True] <= self.spent[False]
        population, sigma = self._first_population, self._first_sigma
        if self.large:
            self.doublings += 1
            population *= 2**self.doublings
        else:
            share, narrower = random.random(2)
            population = floor(population * (0.5 * 2**self.doublings) ** (share**2))
            sigma *= 10 ** (-2 * narrower)
        self._begin(center, max(2, population), sigma)

    def _begin(self, center: torch.Tensor, population: int, sigma: float) -> None:
        self._begun_with = (population, sigma)
        self.strategy = self._make(center=center, population=population, sigma=sigma)
        self.strategy.generation = self.generation
        self.population = self.strategy.population

    def state_dict(self) -> dict[str, Any]:
        """The current strategy's state, and what decides the next restart."""
        population, sigma = self._begun_with
        return {
            "center": self.center.clone(),
            "origin": self._start.clone(),
            "strategy": self.strategy.state_dict(),
            "begun": {"population": population, "sigma": sigma},
            "restart": self.restart,
            "doublings": self.doublings,
            "large": int(self.large),
            "spent": {"large": self.spent[True], "small": self.spent[False]},
            "generation": self.generation,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`. A centre of another size raises ValueError."""
        self.generation = int(state["generation"])
        self._begin(self._start, int(state["begun"]["population"]), float(state["begun"]["sigma"]))
        self._start = torch.as_tensor(state.get("origin", self._start)).clone()  # older snapshots have none
        # What a caller has put elsewhere, as another of several starts, holds for the strategy, too.
        outer = {"center": state["center"], "generation": state["generation"]}
        self.strategy.load_state_dict({**state["strategy"], **outer})
        self.restart, self.doublings, self.large = int(state["restart"]), int(state["doublings"]), bool(state["large"])
        self.spent = {True: int(state["spent"]["large"]), False: int(state["spent"]["small"])}
