"""What `esker resume` may change: where and how long a run continues, never what it computes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from esker.config.hybrids import HybridStopOptions
from esker.config.logs import LogOptions
from esker.config.option import option
from esker.config.options import EngineOptions


@dataclass(frozen=True, kw_only=True)
class SavingOptions:
    """Run"""

    checkpoint_every: int | None = option(None, "write a snapshot every N generations", low=1)
    keep: int | None = option(None, "newest snapshots to keep besides the first and the best; 'none' keeps all", low=1)
    quiet: bool = option(False, "print only errors (what an environment prints still appears)")
    inexact: bool = option(False, "continue even if this machine computes other bits than the one the run began on")


@dataclass(frozen=True, kw_only=True)
class DeviceChange:
    """Engine"""

    device: str | None = option(None, "continue on cpu, cuda or cuda:N; another device than before is not exact")


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(HybridStopOptions, DeviceChange, EngineOptions, LogOptions, SavingOptions):
    """Every option that may change on resume."""


RESUMABLE = frozenset(option.name for option in fields(ResumeOptions))
