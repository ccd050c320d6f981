"""Engines whose policies are on a device: worlds are there, too, or in worker processes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from esker.engines.engine import InlineEngine
from esker.engines.open import MOST_WORKERS
from esker.engines.served import ServedEngine
from esker.errors import RunError, UsageError
from esker.noise.table import NoiseTable
from esker.system.cores import available_cores
from esker.tasks.episodes import Episodes

if TYPE_CHECKING:
    from esker.tasks.device import DeviceEpisodes

MOST = 16_384  # slots, unless more are requested
FEWEST = 16
PER_CORE = 2  # worker processes: one steps while the other's actions are computed
Opened = TypeVar("Opened")


def device_engine(task: DeviceEpisodes, table: NoiseTable | None, note: Callable[[str], None]) -> InlineEngine:
    """An engine with the task's slots, or with half as many, and so on, where the device's memory is too small."""
    return fitting(lambda slots: InlineEngine(replace(task, slots=slots), table), task.slots, task.device, note)


def served_engine(
    episodes: Episodes,
    device: str,
    workers: int | None,
    table: NoiseTable | None,
    step_timeout: float | None,
    note: Callable[[str], None],
) -> ServedEngine:
    """Worker processes (None: two for each core) that step, with policies on a device; fewer slots if memory is short."""
    count = PER_CORE * available_cores() if workers is None else workers
    if not 1 <= count <= MOST_WORKERS:
        raise UsageError(f"workers is {count}; with policies on a device expected 1 to {MOST_WORKERS:,}")
    return fitting(
        lambda slots: ServedEngine(replace(episodes, slots=slots), device, count, table, step_timeout),
        episodes.slots,
        device,
        note,
        fewest=1,
    )


def fitting(
    make: Callable[[int], Opened], wanted: int, device: str, note: Callable[[str], None], fewest: int = FEWEST
) -> Opened:
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
            if slots <= fewest:
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
