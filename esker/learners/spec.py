"""What every process that trains must know; torch-free, since it travels to workers that never train."""

from __future__ import annotations

from dataclasses import dataclass

from esker.learners.rows import TransitionLayout


@dataclass(frozen=True)
class LearnerSpec:
    """What every process that trains must know."""

    layout: TransitionLayout
    low: tuple[float, ...]
    high: tuple[float, ...]
    hidden: tuple[int, ...] = (400, 300)
    actor_activation: str = "tanh"
    critic_activation: str = "leaky_relu"
    lr: float = 1e-3
    batch: int = 256
    discount: float = 0.99
    tau: float = 0.005
    policy_noise: float = 0.2
    noise_clip: float = 0.5
    device: str = "cpu"
    compile: bool = False

    @property
    def actor_sizes(self) -> tuple[int, ...]:
        return (self.layout.observation, *self.hidden, self.layout.action)

    @property
    def critic_sizes(self) -> tuple[int, ...]:
        return (self.layout.observation + self.layout.action, *self.hidden, 1)
