"""LunarLander with a hand-written torch policy and reward function, by `esker.Evolution`.

python examples/lunar_lander.py --weights-path lander.pt      # until the goal: 200, five iterations in a row
python examples/lunar_lander.py --settings evolution-module   # population=100, sigma=0.01, learning_rate=0.001
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
    "esker": {"population": 60, "sigma": 0.1, "lr": 0.03, "evaluations_per_member": 2, "center_evaluations": 10},
    "evolution-module": evolution_module(population_size=100, sigma=0.01, learning_rate=0.001),
}


def policy() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 4))


def reward(model: nn.Module, seed: int, render: bool = False) -> float:
    """The return of one episode; its start is given by the seed."""
    env = gym.make("LunarLander-v3", render_mode="human" if render else None)
    device = next(model.parameters()).device
    observation, _ = env.reset(seed=seed)
    total, done = 0.0, False
    with torch.inference_mode():
        while not done:
            action = model(torch.as_tensor(observation, device=device)).argmax()
            observation, gained, terminated, truncated, _ = env.step(int(action))
            total, done = total + float(gained), terminated or truncated
    env.close()
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-w", "--weights-path", help="where to save the weights, at every report")
    parser.add_argument("-c", "--cuda", action="store_true", help="evaluate members on the GPU")
    parser.add_argument("--settings", choices=SETTINGS, default="esker")
    parser.add_argument("--iterations", type=int, default=1200)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run-dir", help="run folder, to resume from and to plot")
    parser.add_argument("--render", action="store_true", help="show an episode at every report")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    evolution = esker.Evolution(
        policy(),
        reward,
        test_kwargs={"render": True} if options.render else None,
        save_path=options.weights_path,
        device="cuda" if options.cuda else "cpu",
        goal=200,
        patience=5,
        seed=options.seed,
        workers=options.workers,
        run_dir=options.run_dir,
        **SETTINGS[options.settings],
    )
    evolution.run(options.iterations)
    print(f"{evolution.iteration} iterations: {evolution.outcome.reason}")


if __name__ == "__main__":
    main()
