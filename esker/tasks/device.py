"""Episodes whose worlds and policies are on a device, as the task of one run."""

from __future__ import annotations

from dataclasses import dataclass

from esker.noise.table import NoiseTable
from esker.tasks.device_slots import DeviceSlots
from esker.tasks.episodes import Episodes
from esker.tasks.task import Board, Give, Job, Take


@dataclass(frozen=True)
class DeviceEpisodes:
    """Episodes in slots on a device."""

    episodes: Episodes
    world: str
    device: str
    slots: int
    deterministic: bool = False

    def describe(self, generation: int, item: int) -> str:
        """Environment, member and seed of an item."""
        return self.episodes.describe(generation, item)

    def open(self, table: NoiseTable | None, board: Board) -> DeviceEvaluator:
        """Make worlds and rows of policies. Too many for the device's memory raise torch.OutOfMemoryError."""
        slots = DeviceSlots([(self.episodes, table)], self.world, self.device, self.slots, self.deterministic)
        return DeviceEvaluator(slots, board)


class DeviceEvaluator:
    """All slots of a device for one run."""

    def __init__(self, slots: DeviceSlots, board: Board) -> None:
        self.slots, self.board = slots, board

    def evaluate(self, job: Job, take: Take, give: Give) -> int:
        """Evaluate items until `take` ends it; returns how many steps were dropped."""
        slots = self.slots
        with slots.on_device():
            slots.begin(0, job)
            try:
                while (items := take(slots.each - slots.busy, slots.busy)) is not None:
                    if items:
                        slots.start({0: items})
                    elif not slots.busy:
                        return 0
                    for results in slots.step().values():
                        give(results)
                    self.board[0] = slots.steps
                return slots.drop(0)
            finally:
                slots.drop(0)

    def close(self) -> None:
        """Nothing to close: memory is all they hold."""
