"""CartPole with a hand-written torch policy and reward function, by `esker.Evolution`.

python examples/cartpole.py --weights-path cartpole.pt        # until the goal: 475, five generations in a row
python examples/cartpole.py --settings evolution-module       # population=10, sigma=0.1, learning_rate=0.001
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import gymnasium as gym
import torch
from command import Command, count
from torch import nn

import esker
from esker.strategies.conventions import evolution_module

GOAL = 475
SETTINGS = {
    "esker": {"population": 32, "sigma": 0.3, "lr": 0.1, "evaluations_per_member": 1, "center_evaluations": 3},
    "evolution-module": evolution_module(population_size=10, sigma=0.1, learning_rate=0.001),
}


def policy() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))


def episode(env_id: str, model: nn.Module, seed: int, render: bool = False) -> float:
    """The return of one episode; its start is given by the seed."""
    env = gym.make(env_id, render_mode="human" if render else None)
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


reward = partial(episode, "CartPole-v1")


def main(description: str | None, policy: Any, reward: Any, goal: float, settings: dict[str, Any], iterations: int) -> None:
    """What both this example and LunarLander's do with their policy and reward."""
    parser = Command(description)
    parser.add_argument("-w", "--weights-path", "--weights_path", help="where to save the weights, at every report")
    parser.add_argument("-c", "--cuda", action="store_true", help="evaluate members on the GPU")
    parser.add_argument("--settings", choices=settings, default="esker")
    parser.add_argument("--iterations", type=count, default=iterations)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run-dir", help="run folder, to resume from and to plot")
    parser.add_argument("--render", action="store_true", help="show an episode at every report")
    options = parser.parse_args()
    device = parser.cuda(options.cuda)
    torch.manual_seed(options.seed)
    try:
        evolution = esker.Evolution(
            policy(),
            reward,
            test_kwargs={"render": True} if options.render else None,
            save_path=options.weights_path,
            device=device,
            goal=goal,
            patience=5,
            seed=options.seed,
            workers=options.workers,
            run_dir=options.run_dir,
            **settings[options.settings],
        )
    except esker.UsageError as error:
        parser.error(str(error))
    evolution.run(options.iterations)
    print(f"stopped after generation {evolution.iteration}: {evolution.outcome.reason}")


if __name__ == "__main__":
    main(__doc__, policy, reward, GOAL, SETTINGS, iterations=200)
