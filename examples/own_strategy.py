"""A strategy of your own, in one file: (μ, λ) truncation selection, as `--strategy own_strategy:Truncation`.

esker train CartPole-v1 --strategy own_strategy:Truncation --sigma 0.1 --generations 30
python own_strategy.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import esker
from esker.noise.counter import CounterNoise
from esker.noise.population import Population
from esker.strategies.strategy import Update


class Truncation:
    """The next centre is the mean of the better half; options are taken by name, from the flags of the same names."""

    def __init__(self, center: Any, *, population: int = 40, sigma: float = 0.02, seed: int = 0, noise: Any = None) -> None:
        self.center = torch.as_tensor(center, dtype=torch.float32).clone()
        self.population, self.sigma, self.generation = population, sigma, 0
        self.noise = noise or CounterNoise(seed, len(self.center))

    def ask(self, members: slice | None = None) -> Population:
        chosen = range(self.population)[members or slice(None)]
        return Population(self.center.numpy(), self.sigma, self.generation, False, self.noise, chosen)

    def tell(self, fitness: Any) -> Update:
        weights = np.zeros(len(fitness))
        weights[np.argsort(np.asarray(fitness))[len(fitness) // 2 :]] = 1 / (len(fitness) - len(fitness) // 2)
        step = self.sigma * torch.from_numpy(self.noise.weighted_sum(self.generation, weights))
        self.center, self.generation = self.center + step, self.generation + 1
        return Update(float(step.norm()), float(step.norm()), float(self.center.norm()), self.sigma, 1.0, 0.0)

    def state_dict(self) -> dict[str, Any]:
        return {"center": self.center.clone(), "generation": self.generation}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.center, self.generation = state["center"].clone(), state["generation"]


if __name__ == "__main__":
    from command import Command

    generations = Command(__doc__).number("generations", 30, "generations to train").parse_args().generations
    run = esker.train("CartPole-v1", preset=None, strategy="own_strategy:Truncation", sigma=0.1, generations=generations)
    print(run)
