"""The share controller: how many individuals are trained by gradients, and how many are not."""

from __future__ import annotations

from typing import Any

from esker.noise.address import Purpose, keys


class ShareController:
    """p(RL) = -K(share - target) + ½, clipped to [0, 1]; both counts begin at one."""

    def __init__(self, target: float, k: float, seed: int) -> None:
        self.target = target
        self.k = k
        self.seed = seed
        self.early = 0
        self.rl = 1
        self.es = 1

    @property
    def issued(self) -> int:
        """How many individuals were decided on."""
        return self.early + self.counted

    @property
    def counted(self) -> int:
        """How many of them are in the share."""
        return self.rl + self.es - 2

    @property
    def share(self) -> float:
        """The share of RL individuals so far."""
        return self.rl / (self.rl + self.es)

    @property
    def probability(self) -> float:
        """p(RL) of the next individual."""
        return min(max(-self.k * (self.share - self.target) + 0.5, 0.0), 1.0)

    def next_is_rl(self, begun: bool = True) -> bool:
        """Decide on the next individual, by its address, and count it; none is RL, or in the share, before all begins."""
        if not begun:
            self.early += 1
            return False
        drawn = int(keys(self.seed, Purpose.SHARE, self.issued)[0]) / 2**64
        is_rl = drawn < self.probability
        if is_rl:
            self.rl += 1
        else:
            self.es += 1
        return is_rl

    def state(self) -> dict[str, Any]:
        """The counts."""
        return {"rl": self.rl, "es": self.es, "early": self.early}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from the counts."""
        self.rl, self.es, self.early = state["rl"], state["es"], state.get("early", 0)
