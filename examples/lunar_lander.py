"""LunarLander with a hand-written torch policy, by `esker.Evolution`; reward and flags as in `cartpole.py`.

python examples/lunar_lander.py --weights-path lander.pt      # until the goal: 200, five generations in a row
python examples/lunar_lander.py --settings evolution-module   # population=100, sigma=0.01, learning_rate=0.001
"""

from functools import partial

from cartpole import episode, main
from torch import nn

from esker.strategies.conventions import evolution_module

GOAL = 200
SETTINGS = {
    "esker": {"population": 100, "sigma": 0.05, "lr": 0.03, "evaluations_per_member": 1, "center_evaluations": 5},
    "evolution-module": evolution_module(population_size=100, sigma=0.01, learning_rate=0.001),
}


def policy() -> nn.Module:
    last = nn.Linear(100, 4)
    nn.init.normal_(last.weight, std=1e-3)  # no action is preferred yet, so perturbations decide
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(8, 100), nn.Tanh(), nn.Linear(100, 100), nn.Tanh(), last)


reward = partial(episode, "LunarLander-v3")

if __name__ == "__main__":
    main(__doc__, policy, reward, GOAL, SETTINGS, iterations=1200)
