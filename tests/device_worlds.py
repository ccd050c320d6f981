"""Worlds of a user's own on a device, for tests."""

from __future__ import annotations

import torch

from esker.worlds.device import Seeds, Stepped


class Echo:
    """Pays each step what the action is; an episode lasts as many steps as its seed says, from 1 to 7."""

    def __init__(self, rows: int, device: torch.device, size: int = 3) -> None:
        self.limit = None
        self.left = torch.ones(rows, dtype=torch.int64, device=device)
        self.seen = torch.zeros(rows, size, device=device)

    def reset(self, rows: torch.Tensor, seeds: Seeds) -> torch.Tensor:
        self.left[rows] = torch.from_numpy(1 + seeds % 7)
        self.seen[rows] = torch.from_numpy(1 + seeds % 7).float()[:, None].expand(-1, self.seen.shape[1])
        return self.seen[rows]

    def step(self, actions: torch.Tensor) -> Stepped:
        self.left -= 1
        return Stepped(self.seen, actions[:, 0], self.left <= 0)


class Wide(Echo):
    """Observes more than its environment says."""

    def __init__(self, rows: int, device: torch.device) -> None:
        super().__init__(rows, device, size=5)
