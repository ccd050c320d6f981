"""The state of a low-rank evolution: a strategy on the device, and the counters of every evolution by a reward."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from esker.algorithms.facts import Facts
from esker.algorithms.observer import Row as JournalRow
from esker.algorithms.snapshot import Snapshot
from esker.config.evolution import EvolutionConfig
from esker.functions.lowrank.batches import LowRankBatches, LowRankJob
from esker.functions.lowrank.strategy import LowRankES, Rates
from esker.functions.parameters import FlatParameters
from esker.functions.state import FunctionEvolution
from esker.functions.task import resolve_device
from esker.noise.directions import Vector
from esker.system.torch_threads import one_torch_thread


class LowRankEvolution(FunctionEvolution):
    """Moves a centre that stays on its device; on a CPU updates use one thread, so that bits are equal."""

    def __init__(self, config: EvolutionConfig, center: Vector, task: LowRankBatches, flat: FlatParameters) -> None:
        rates = Rates(**{name: getattr(config, name) for name in Rates.__dataclass_fields__})
        start = torch.from_numpy(center)
        strategy: Any = LowRankES(start, task.parts, rates, config.seed, resolve_device(task.device))
        super().__init__(config, strategy, task, flat)
        self.strategy: Any = strategy

    @property
    def final(self) -> Vector:
        """The parameters to end with: the best centre evaluated so far, or the last."""
        best = self.best if self.config.final == "best" else None
        return (self.strategy.center if best is None else best).cpu().numpy()

    def job(self) -> LowRankJob:  # type: ignore[override]
        """What the engine must know of this generation."""
        return LowRankJob(self.strategy)

    def improves(self, facts: Facts) -> bool:
        """Whether this generation's centre is to be kept: with final='last' none is, since each costs a snapshot."""
        return self.config.final == "best" and super().improves(facts)

    def move(self, facts: Facts) -> JournalRow:
        """Tell the strategy, on one thread where that decides the bits."""
        with one_torch_thread(self.strategy.device.type == "cpu"):
            return super().move(facts)

    def snapshot(self) -> Snapshot:
        """Everything that is state, and the start where the centre is pulled back to it."""
        snapshot, anchor = super().snapshot(), self.strategy.anchor
        arrays = {} if anchor is None else {"anchor": anchor.cpu().numpy()}
        return Snapshot(snapshot.generation, snapshot.arrays | arrays, snapshot.values)

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        super().restore(snapshot)
        if self.strategy.anchor is not None:
            self.strategy.anchor.copy_(torch.from_numpy(np.array(snapshot.arrays["anchor"])))
