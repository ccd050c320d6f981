"""CartPole with a hand-written torch policy and reward function, by `esker.Evolution`.

python examples/cartpole.py --weights-path cartpole.pt        # until the goal: 475, five iterations in a row
python examples/cartpole.py --settings evolution-module       # population=10, sigma=0.1, learning_rate=0.001
"""

from __future__ import annotations

import argparse
import os

import gymnasium as gym
import torch
from torch import nn

import esker
from esker.strategies.conventions import evolution_module

SETTINGS = {
    "esker": {"population": 32, "sigma": 0.3, "lr": 0.1, "evaluations_per_member": 1, "center_evaluations": 3},
    "evolution-module": evolution_module(population_size=10, sigma=0.1, learning_rate=0.001),
}


def policy() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))


def reward(model: nn.Module, seed: int, render: bool = False) -> float:
    """The return of one episode; its start is given by the seed."""
    env = gym.make("CartPole-v1", render_mode="human" if render else None)
    device = next(model.parameters()).device
    observation, _ = env.reset(seed=seed)
    total, done = 0.0, False
    with torch.inference_mode():
        while not done:
            action = model(torch.as_tensor(observation, dtype=torch.float32, device=device)).argmax()
            observation, gained, terminated, truncated, _ = env.step(int(action))
            total, done = total + float(gained), terminated or truncated
    env.close()
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-w", "--weights-path", help="where to save the weights, at every report")
    parser.add_argument("-c", "--cuda", action="store_true", help="evaluate members on the GPU")
    parser.add_argument("--settings", choices=SETTINGS, default="esker")
    parser.add_argument("--iterations", type=int, default=200)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--render", action="store_true", help="show an episode at every report")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    evolution = esker.Evolution(
        policy(),
        reward,
        test_kwargs={"render": True} if options.render else None,
        save_path=options.weights_path,
        device="cuda" if options.cuda else "cpu",
        goal=475,
        patience=5,
        seed=options.seed,
        workers=options.workers,
        **SETTINGS[options.settings],
    )
    evolution.run(options.iterations)
    print(f"{evolution.iteration} iterations: {evolution.outcome.reason}")


if __name__ == "__main__":
    main()
