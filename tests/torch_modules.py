"""Torch modules that tests name by import path."""

import torch
from torch import nn


class Plain(nn.Module):
    def __init__(self, shape, outputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(shape[0], 16), nn.Tanh(), nn.Linear(16, outputs))

    def forward(self, observation):
        return self.layers(observation)


class Recurrent(nn.Module):
    """A leaky integrator built from linear layers, which vmap can batch."""

    def __init__(self, shape, outputs):
        super().__init__()
        self.inward, self.onward, self.outward = nn.Linear(shape[0], 8), nn.Linear(8, 8), nn.Linear(8, outputs)

    def initial_state(self):
        return torch.zeros(1, 8), torch.ones(1, 1)

    def forward(self, observation, state):
        hidden, count = state
        hidden = torch.tanh(self.inward(observation) + self.onward(hidden) / count)
        return self.outward(hidden), (hidden, count + 1)


class Unbatchable(nn.Module):
    """nn.LSTM has no batching rule."""

    def __init__(self, shape, outputs):
        super().__init__()
        self.lstm, self.outward = nn.LSTM(shape[0], 8, batch_first=True), nn.Linear(8, outputs)

    def initial_state(self):
        return torch.zeros(1, 1, 8), torch.zeros(1, 1, 8)

    def forward(self, observation, state):
        x, state = self.lstm(observation[:, None], state)
        return self.outward(x[:, 0]), state


class Stateless(Unbatchable):
    """Answers a state and has no way to begin one."""

    initial_state = property()

    def forward(self, observation):
        x, state = self.lstm(observation[:, None])
        return self.outward(x[:, 0]), state


class WrongSize(Plain):
    def forward(self, observation):
        return self.layers(observation)[:, :1]


def not_a_module(shape, outputs):
    return 3
