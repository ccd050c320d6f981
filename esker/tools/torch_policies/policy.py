"""A whole policy in torch: normaliser, network and action head, without any code of esker."""

from __future__ import annotations

import torch
from torch import nn

from esker.noise.directions import Vector
from esker.policies.normalizer import CLIP, Normalizer
from esker.policies.policy import Policy
from esker.policies.torch_heads import torch_head
from esker.tools.torch_policies.networks import Tensors, torch_network


class TorchPolicy(nn.Module):
    """Observations in, actions out, a row each; a network with memory takes its state too and returns the next one."""

    def __init__(self, policy: Policy, parameters: Vector | None = None) -> None:
        super().__init__()
        self.normalizer = TorchNormalizer(policy.normalizer)
        self.network = torch_network(policy.network, policy.parameters if parameters is None else parameters)
        self.head = torch_head(policy.head)
        self.eval().requires_grad_(False)

    def forward(self, observation: torch.Tensor, *state: torch.Tensor) -> torch.Tensor | Tensors:
        outputs, *after = self.network(self.normalizer(observation), *state)
        action = self.head(outputs)
        return (action, *after) if after else action


class TorchNormalizer(nn.Module):
    """(observation - mean)/std in double precision, as in training; the identity if training did not normalise."""

    mean: torch.Tensor
    inverse_std: torch.Tensor

    def __init__(self, normalizer: Normalizer | None) -> None:
        super().__init__()
        self.active = normalizer is not None
        if normalizer is not None:
            self.register_buffer("mean", torch.from_numpy(normalizer.mean.copy()))
            self.register_buffer("inverse_std", torch.from_numpy(normalizer.inverse_std.copy()))

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        if not self.active:
            return observation.to(torch.float32)
        scaled = (observation.to(torch.float64) - self.mean) * self.inverse_std
        return torch.clamp(scaled, -CLIP, CLIP).to(torch.float32)
