"""A model that is not torch: a plain NumPy network learns sin(x) by ask and tell."""

import numpy as np
from command import Command

import esker

x = np.linspace(-3, 3, 100)
HIDDEN = 16


def network(theta: np.ndarray) -> np.ndarray:
    w1, b1, w2 = theta.reshape(3, HIDDEN)
    return np.tanh(np.outer(x, w1) + b1) @ w2


generations = Command(__doc__).number("generations", 1500, "generations to make").parse_args().generations
start = np.random.default_rng(0).normal(size=3 * HIDDEN)
es = esker.OpenAIES(start, population=64, sigma=0.05, lr=0.03, lr_decay=0.998, seed=0)
for generation in range(generations):
    members = es.ask().parameters().numpy()
    es.tell([-np.mean((network(theta) - np.sin(x)) ** 2) for theta in members])
    if (generation + 1) % max(1, generations // 5) == 0:
        error = np.mean((network(es.center.numpy()) - np.sin(x)) ** 2)
        print(f"generation {generation + 1}: mean squared error {error:.2e}")
