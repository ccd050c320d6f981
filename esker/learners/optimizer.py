"""Adam over a flat network: one fused kernel, and a state that is only ever changed in place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from esker.learners.networks import FlatMLP, StackedMLP
from esker.learners.spec import LearnerSpec

Arrays = dict[str, np.ndarray]
Network = FlatMLP | StackedMLP
MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def adam(network: Network, spec: LearnerSpec) -> torch.optim.Adam:
    """Adam whose state exists from the start, at addresses that a captured graph may rely on."""
    optimizer = torch.optim.Adam(network.parameters, lr=spec.lr, fused=True, capturable=spec.device != "cpu")
    for parameter in network.parameters:
        optimizer.state[parameter] = {
            "step": torch.zeros((), device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    return optimizer


def reset(optimizer: torch.optim.Adam) -> None:
    """Reset to the initial state."""
    for state in optimizer.state.values():
        for tensor in state.values():
            tensor.zero_()


def step(optimizer: torch.optim.Adam, network: Network, loss: torch.Tensor) -> None:
    """One step down a loss."""
    for parameter, gradient in zip(network.parameters, torch.autograd.grad(loss, network.parameters), strict=True):
        parameter.grad = gradient.contiguous()  # the fused kernel does not look at strides; here this copies nothing
    optimizer.step()


def moments(optimizer: torch.optim.Adam, network: Network) -> Arrays:
    """The state as flat arrays."""
    states = [optimizer.state[parameter] for parameter in network.parameters]
    flat = {name: np.concatenate([to_array(state[name]).reshape(-1) for state in states]) for name in MOMENTS[1:]}
    return {"step": np.array([float(states[0]["step"])]), **flat}


@torch.no_grad()
def restore(optimizer: torch.optim.Adam, network: Network, arrays: Mapping[str, np.ndarray]) -> None:
    """Put a state back."""
    at = 0
    for parameter in network.parameters:
        state, part = optimizer.state[parameter], slice(at, at + parameter.numel())
        state["step"].fill_(float(arrays["step"][0]))
        for name in MOMENTS[1:]:
            state[name].copy_(torch.from_numpy(np.array(arrays[name][part])).view(parameter.shape))
        at += parameter.numel()


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """A copy of a tensor as an array."""
    return tensor.detach().cpu().numpy().copy()
