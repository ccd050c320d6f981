"""Classic control on a device: the formulas that native stepping uses, on float64 tensors as Gymnasium computes."""

from __future__ import annotations

from typing import Any

import torch

from esker.worlds.classic import CLASSIC, ClassicDefinition
from esker.worlds.device.worlds import Seeds, Starts, Stepped
from esker.worlds.torch_arrays import TorchArrays


class ClassicDeviceWorlds:
    """CartPole, Pendulum, MountainCar or Acrobot; observations are float32, as Gymnasium's."""

    def __init__(self, name: str, rows: int, device: torch.device, limit: int | None, **options: Any) -> None:
        self.definition: ClassicDefinition = CLASSIC[name](TorchArrays(device, torch.float64), **options)
        self.limit = limit
        self.starts = Starts(self.definition.start)
        self.device = device
        self.state = torch.zeros(self.definition.variables, rows, dtype=torch.float64, device=device)

    def reset(self, rows: torch.Tensor, seeds: Seeds) -> torch.Tensor:
        """Begin episodes with the starts that Gymnasium draws from these seeds."""
        drawn = torch.from_numpy(self.starts.take(seeds))
        state = drawn.to(self.device, torch.float64).T
        self.state[:, rows] = state
        return self._observe(state)

    def step(self, actions: torch.Tensor) -> Stepped:
        """Step all rows."""
        state, rewards, terminated = self.definition.step(self.state.unbind(), actions)
        self.state = torch.stack(tuple(state))
        paid = torch.full_like(self.state[0], rewards) if isinstance(rewards, float) else rewards
        return Stepped(self._observe(self.state), paid, terminated)

    def _observe(self, state: torch.Tensor) -> torch.Tensor:
        return torch.stack(tuple(self.definition.observe(state.unbind())), dim=1).float()
