"""(1+1)-ES: the individual replaces the mean when it is better; the 1/5 rule adapts the variance."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import torch

from esker.strategies.gaussian import Vector, fitness_of, normals, positive, restore_tensors, variance, vector


class OnePlusOne:
    """Ask for one individual, tell its fitness and the mean's.

    Over the last `window` trials: a success rate above `success_rate` divides the variance by `tau`, any other multiplies
    it, never below `var_floor`; nothing adapts before the window is full. Bad arguments raise ValueError.
    """

    def __init__(
        self,
        mean: Vector,
        var: float | Vector = 1e-3,
        *,
        success_rate: float = 0.2,
        tau: float = 0.99,
        window: int = 10,
        var_floor: float = 1e-5,
        seed: int = 0,
    ) -> None:
        if not 0 <= success_rate <= 1:
            raise ValueError(f"success_rate is {success_rate}; expected a number from 0 to 1")
        if not 0 < tau <= 1:
            raise ValueError(f"tau is {tau}; expected a number above 0 and at most 1")
        if window < 1:
            raise ValueError(f"window is {window}; expected at least 1")
        self.mean = vector("mean", mean)
        self.var = variance(var, self.mean)
        self.success_rate = float(success_rate)
        self.tau = float(tau)
        self.var_floor = positive("var_floor", var_floor)
        self.seed = seed
        self.asked = 0
        self.trials: deque[bool] = deque(maxlen=window)

    def ask(self) -> torch.Tensor:
        """One individual: mean + √var·ε."""
        self.asked += 1
        return self.mean + self.var.sqrt() * normals(self.seed, self.asked - 1, self.mean)

    def tell(self, individual: Vector, fitness: float, mean_fitness: float) -> bool:
        """Returns whether the individual was better than the mean, which it then replaces. NaN raises ValueError."""
        row = vector("individual", individual).to(self.mean.dtype)
        if row.shape != self.mean.shape:
            raise ValueError(f"individual has {len(row)} parameters; expected {len(self.mean)}")
        success = fitness_of("fitness", fitness) > fitness_of("mean_fitness", mean_fitness)
        if success:
            self.mean = row
        self.trials.append(success)
        if len(self.trials) == self.trials.maxlen:
            grows = sum(self.trials) / len(self.trials) > self.success_rate
            self.var = (self.var / self.tau if grows else self.var * self.tau).clamp_min(self.var_floor)
        return success

    def state_dict(self) -> dict[str, Any]:
        """The state that `tell` changes."""
        return {"mean": self.mean.clone(), "var": self.var.clone(), "asked": self.asked, "trials": list(self.trials)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state_dict`. Another dimension raises ValueError."""
        restore_tensors(state, ("mean", self.mean), ("var", self.var))
        self.asked = state["asked"]
        self.trials = deque(state["trials"], maxlen=self.trials.maxlen)
