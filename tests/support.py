"""What several tests use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from esker.functions.lowrank.parts import Part, Parts
from esker.noise.address import Purpose, episode_seed

HERE = Path(__file__).parent


def center(run: object, checkpoint: str | int = "latest") -> np.ndarray:
    """The parameters of a run's checkpoint."""
    return run.policy(checkpoint).parameters  # type: ignore[attr-defined]


def first_of_evaluation(env: Any, policy: Any) -> float:
    """The return of the first episode of an evaluation, played by hand."""
    observation, _ = env.reset(seed=episode_seed(0, Purpose.EVALUATION, 0, 0))
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        total, over = total + float(reward), terminated or truncated
    return total


def dense(parts: Parts, normals: torch.Tensor, part: Part) -> torch.Tensor:
    """ε of one part as the tensor that it stands for, from one direction's normals."""
    left, right = normals[part.left], normals[part.right]
    if part.matrix is None:
        return left.reshape(part.shape)
    a, b = left.reshape(part.matrix[0], parts.rank), right.reshape(part.matrix[1], parts.rank)
    return (a @ b.T / parts.rank**0.5).reshape(part.shape)
