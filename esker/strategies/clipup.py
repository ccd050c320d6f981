"""ClipUp (Toklu, Liskowski, Srivastava 2020): normalised gradients, momentum, and a velocity that is clipped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from esker.system.torch_threads import one_torch_thread


class ClipUp(torch.optim.Optimizer):
    """v ← m·v + lr·g/|g|, clipped to |v| ≤ max_speed; then θ ← θ - v.

    Only the gradient's direction counts, so `lr` and `max_speed` are distances in parameter space whatever the scale of
    the fitness. `max_speed` is 2·lr unless given. A zero gradient adds nothing to the velocity. Weight decay is decoupled.
    """

    def __init__(
        self,
        params: Iterable[torch.Tensor],
        lr: float = 0.075,
        *,
        momentum: float = 0.9,
        max_speed: float | None = None,
        weight_decay: float = 0.0,
    ) -> None:
        if not lr > 0:
            raise ValueError(f"lr is {lr}; expected a number above 0")
        if max_speed is not None and not max_speed > 0:
            raise ValueError(f"max_speed is {max_speed}; expected a number above 0")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum is {momentum}; expected 0 or more and less than 1")
        defaults = {"lr": lr, "momentum": momentum, "max_speed": max_speed, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Step every parameter that has a gradient; each has its own velocity and speed limit."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with one_torch_thread():  # a norm's bits depend on how many threads share it
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._move(parameter, group)
        return loss

    def _move(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        gradient, lr = parameter.grad, group["lr"]
        assert gradient is not None
        limit = 2 * lr if group["max_speed"] is None else group["max_speed"]
        state = self.state[parameter]
        if not state:
            state["velocity"] = torch.zeros_like(parameter)
        velocity = state["velocity"]
        length = float(torch.linalg.vector_norm(gradient))
        velocity.mul_(group["momentum"])
        if length > 0:
            velocity.add_(gradient, alpha=lr / length)
        speed = float(torch.linalg.vector_norm(velocity))
        if speed > limit:
            velocity.mul_(limit / speed)
        if group["weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
        parameter.sub_(velocity)
