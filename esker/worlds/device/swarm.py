"""A swarm that covers beacons: agents with momentum spread out so that each beacon has one near, without collisions.

All agents are steered by one policy, which sees them all. `esker train esker.worlds.device.swarm:Swarm --world torch`
trains it on a device; `Swarm`, one world as a Gymnasium environment, is what a centre is judged by.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch

from esker.worlds.device.single import SingleWorld
from esker.worlds.device.worlds import Seeds, Starts, Stepped

AGENTS = 4
STEPS = 100
FORCE, FRICTION, REACH = 0.02, 0.9, 0.15  # push of an action, share of velocity kept, distance of a collision


class SwarmWorlds:
    """Positions and velocities of agents and places of beacons, in the square from -1 to 1."""

    limit: int | None = STEPS

    def __init__(self, rows: int, device: torch.device, agents: int = AGENTS) -> None:
        self.agents, self.device = agents, device
        self.place = torch.zeros(rows, agents, 2, device=device)
        self.velocity = torch.zeros(rows, agents, 2, device=device)
        self.beacons = torch.zeros(rows, agents, 2, device=device)
        self.starts = Starts(lambda random: random.uniform(-1, 1, (2, agents, 2)))
        self._others = 1 - torch.eye(agents, device=device)

    def reset(self, rows: torch.Tensor, seeds: Seeds) -> torch.Tensor:
        """Agents and beacons anywhere, by the seed; agents at rest."""
        drawn = torch.from_numpy(self.starts.take(seeds)).float().to(self.device)
        self.place[rows], self.beacons[rows] = drawn[:, 0], drawn[:, 1]
        self.velocity[rows] = 0
        return _observe(drawn[:, 0], torch.zeros_like(drawn[:, 0]), drawn[:, 1])

    def step(self, actions: torch.Tensor) -> Stepped:
        """Push the agents; the reward is how near the beacons' nearest agents are, less what collisions cost."""
        push = actions.view(-1, self.agents, 2).clamp(-1, 1)
        self.velocity = FRICTION * self.velocity + FORCE * push
        self.place = (self.place + self.velocity).clamp(-1.5, 1.5)
        distance = torch.linalg.vector_norm(self.beacons[:, :, None] - self.place[:, None], dim=-1).amin(dim=2).mean(dim=1)
        between = torch.linalg.vector_norm(self.place[:, :, None] - self.place[:, None], dim=-1)
        collisions = ((between < REACH) * self._others).sum(dim=(1, 2)) / 2
        return Stepped(_observe(self.place, self.velocity, self.beacons), -distance - 0.1 * collisions, None)


def _observe(place: torch.Tensor, velocity: torch.Tensor, beacons: torch.Tensor) -> torch.Tensor:
    """Of every agent its place, its velocity times ten, and where each beacon is from there."""
    around = (beacons[:, None] - place[:, :, None]).flatten(2)
    return torch.cat([place, 10 * velocity, around], dim=2).flatten(1)


class Swarm(SingleWorld):
    """One swarm as a Gymnasium environment."""

    make_world = SwarmWorlds

    def __init__(self, agents: int = AGENTS) -> None:
        numbers = agents * (4 + 2 * agents)
        observations = gym.spaces.Box(-np.inf, np.inf, (numbers,), np.float32)
        actions = gym.spaces.Box(-1.0, 1.0, (2 * agents,), np.float32)
        options: dict[str, Any] = {"agents": agents}
        super().__init__(observations, actions, options)
