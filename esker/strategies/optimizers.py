"""The optimizers of a centre: torch's and ClipUp, by name, stepping along gradient estimates of the fitness."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch

from esker.noise.directions import Vector
from esker.strategies.clipup import ClipUp
from esker.system.light_torch import bare_step, spare_compiler

OptimizerName = Literal["adam", "adamw", "sgd", "rmsprop", "clipup"]
OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "clipup": ClipUp,
}
MOMENTUM = {"sgd": 0.0, "rmsprop": 0.0, "clipup": 0.9}  # those that have one, with its default


class Ascent:
    """A centre and the optimizer that moves it uphill. Bad arguments raise ValueError."""

    def __init__(
        self,
        start: torch.Tensor,
        optimizer: str,
        *,
        lr: float,
        momentum: float | None = None,
        max_speed: float | None = None,
        weight_decay: float = 0.0,
    ) -> None:
        if optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer is {optimizer!r}; expected one of {', '.join(OPTIMIZERS)}")
        if momentum and optimizer not in MOMENTUM:
            raise ValueError(f"momentum is {momentum}; {optimizer} has none (use sgd, rmsprop or clipup)")
        if max_speed is not None and optimizer != "clipup":
            raise ValueError(f"max_speed is {max_speed}; {optimizer} has none (use clipup)")
        options: dict[str, Any] = {"lr": lr, "weight_decay": weight_decay}
        if optimizer in MOMENTUM:
            options["momentum"] = MOMENTUM[optimizer] if momentum is None else momentum
        if optimizer == "clipup":
            options["max_speed"] = max_speed
        self._center = torch.nn.Parameter(start, requires_grad=False)
        self.values: Vector = self._center.data.numpy()  # the centre's own memory
        spare_compiler()
        self._optimizer = OPTIMIZERS[optimizer]([self._center], **options)

    @property
    def center(self) -> torch.Tensor:
        """The current parameters θ, a flat float32 vector."""
        return self._center.data

    def step(self, gradient: Vector, lr: float) -> float:
        """Move the centre along an estimate of the fitness's gradient; returns how far it went."""
        before = self.values.copy()
        self._center.grad = torch.from_numpy(-gradient)
        set_rate(self._optimizer, lr)
        bare_step(self._optimizer)
        self._center.grad = None
        before -= self.values
        return length(before)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's moments."""
        return {name: _copy(value) for name, value in self._optimizer.state.get(self._center, {}).items()}

    def load(self, center: torch.Tensor, moments: dict[str, Any]) -> None:
        """Continue from a centre and moments."""
        self.center.copy_(center)
        if moments:
            self._optimizer.state[self._center] = {name: _copy(value) for name, value in moments.items()}
        else:
            self._optimizer.state.pop(self._center, None)


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Step with this learning rate from now on; a maximum speed keeps its ratio to the rate."""
    group, first = optimizer.param_groups[0], optimizer.defaults
    group["lr"] = lr
    if first.get("max_speed") is not None:
        group["max_speed"] = first["max_speed"] * (lr / first["lr"])


def length(vector: Vector) -> float:
    """The norm, with the bits of `numpy.linalg.norm` and without its checks."""
    return float(np.sqrt(vector.dot(vector)))


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value
