"""es-torch's minimal HalfCheetah: npop, lr, std and weight_decay as there, all members in one vector environment."""

from functools import cache

import gymnasium as gym
import numpy as np
import torch
from command import Command
from torch import nn

import esker
from esker.strategies.conventions import es_torch

parser = Command(__doc__).number("epochs", 1000, "updates to make").number("steps", 1000, "length of an episode")
epochs, STEPS = vars(parser.parse_args()).values()
policy = nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))
for layer in policy[::2]:
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)


@cache
def environments(count):
    return gym.vector.SyncVectorEnv([lambda: gym.make("HalfCheetah-v5", max_episode_steps=STEPS)] * count)


def returns(members, seed):
    """The return of each member; HalfCheetah's episodes all end together, at the time limit."""
    count = len(members["0.weight"])
    env, total = environments(count), np.zeros(count)
    observations, _ = env.reset(seed=seed)
    for _ in range(STEPS):
        actions = members.each(torch.as_tensor(observations, dtype=torch.float32))
        observations, rewards, *_ = env.step(actions.detach().numpy())
        total += rewards
    return total


esker.Evolution(policy, reward_batch=returns, **es_torch(npop=30, lr=0.04, std=0.025, weight_decay=0.0025)).run(epochs, 1)
