"""The device engine: one process steps thousands of worlds on a GPU, or on the CPU by torch."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from esker.engines.engine import InlineEngine
from esker.errors import RunError
from esker.noise.table import NoiseTable

if TYPE_CHECKING:
    from esker.tasks.device import DeviceEpisodes

MOST = 16_384  # slots, unless more are requested
FEWEST = 16


def device_engine(task: DeviceEpisodes, table: NoiseTable | None, note: Callable[[str], None]) -> InlineEngine:
    """An engine with the task's slots, or with half as many, and so on, where the device's memory is too small."""
    import torch

    wanted = task.slots
    while True:
        try:
            engine = InlineEngine(task, table)
            break
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if task.slots <= FEWEST:
                raise RunError(f"{task.device} has too little memory for {task.slots} slots: {error}") from error
        task = replace(task, slots=task.slots // 2)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    if task.slots < wanted:
        note(f"{task.device} has no memory for {wanted:,} slots; continuing with {task.slots:,}")
    return engine


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error of torch or Warp means out of memory."""
    import torch

    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in text or "failed to allocate" in text
