"""The device engine: one process steps thousands of worlds on a GPU, or on the CPU by torch."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from esker.engines.engine import InlineEngine
from esker.errors import RunError
from esker.noise.table import NoiseTable

if TYPE_CHECKING:
    from esker.tasks.device import DeviceEpisodes

MOST = 16_384  # slots, unless more are requested
FEWEST = 16
Opened = TypeVar("Opened")


def device_engine(task: DeviceEpisodes, table: NoiseTable | None, note: Callable[[str], None]) -> InlineEngine:
    """An engine with the task's slots, or with half as many, and so on, where the device's memory is too small."""
    return fitting(lambda slots: InlineEngine(replace(task, slots=slots), table), task.slots, task.device, note)


def fitting(make: Callable[[int], Opened], wanted: int, device: str, note: Callable[[str], None]) -> Opened:
    """What `make` makes with the wanted number of slots, or with as many as the device's memory has room for."""
    import torch

    slots = wanted
    while True:
        try:
            opened = make(slots)
            break
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if slots <= FEWEST:
                raise RunError(f"{device} has too little memory for {slots} slots: {error}") from error
        slots //= 2
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    if slots < wanted:
        note(f"{device} has no memory for {wanted:,} slots; continuing with {slots:,}")
    return opened


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error of torch or Warp means out of memory."""
    import torch

    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in text or "failed to allocate" in text
