"""The typed configuration of `esker.Evolution`: any model, any reward."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from esker.config.logs import LogOptions
from esker.config.option import option
from esker.config.options import ClusterOptions, RunOptions, StopOptions, UpdateOptions
from esker.errors import UsageError
from esker.noise.directions import NoiseKind
from esker.noise.table import DEFAULT_TABLE_SIZE


@dataclass(frozen=True, kw_only=True)
class EvolutionConfig(UpdateOptions, StopOptions, ClusterOptions, LogOptions, RunOptions):
    """Everything that decides an `esker.Evolution` run, besides the model and the reward."""

    algo: str = option("function", "algorithm")
    env: str = option("reward function", "the reward: its import path, where it has one")
    model: str = option("module", "what makes the model: an import path, or what it is")
    noise: NoiseKind = option("table", "perturbations from a shared table, drawn by counter, or low-rank (EGGROLL)")
    table_size: int = option(DEFAULT_TABLE_SIZE, "normals in the shared table", low=1)
    rank: int = option(1, "rank of each layer's perturbation (noise low-rank)", low=1, high=10_000)
    vectors: Literal["noise", "keep"] = option("noise", "biases and norms get ordinary noise, or stay (noise low-rank)")
    dtype: Literal["float32", "bfloat16", "float16"] = option("float32", "type of the evaluated model (noise low-rank)")
    int8: bool = option(False, "round the evaluated weights of linear layers to int8 (noise low-rank)")
    anchor_decay: float = option(
        0.0, "pull the centre back towards its start: lr × this × the distance (noise low-rank)", low=0
    )
    evaluations_per_member: int = option(1, "evaluations averaged into a fitness, for noisy rewards", low=1, high=1_000_000)
    center_evaluations: int = option(1, "evaluations of the centre per generation", low=1, high=1_000_000)
    members_per_batch: int | None = option(None, "members passed to reward_batch at once", low=1)
    workers: int | None = option(
        None, "workers that evaluate members (default: 4; engine ray: every CPU; 0: this process)", low=0
    )
    executor: Literal["processes", "threads"] = option("processes", "what a worker is")
    timeout: float | None = option(None, "replace a worker whose evaluation takes longer than X seconds", above=0)
    device: str | None = option(None, "where members are evaluated (default: where the model is)")
    gradients: bool = option(False, "let rewards compute gradients (default: torch.no_grad)")
    final: Literal["best", "last"] = option("best", "the parameters that the model ends with")
    on_error: Literal["stop", "worst"] = option("stop", "a member whose reward fails: stop the run, or rank it last")

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        self.check_update()
        self.check_goal()
        if self.shaping in ("sign", "centered_sign_rank"):
            raise UsageError(f"shaping {self.shaping!r} counts the rewards of steps, and a function has none")
        given = [name for name in LOW_RANK_OPTIONS if getattr(self, name) != getattr(EvolutionConfig, name)]
        if given and self.noise != "low-rank":
            raise UsageError(f"{given[0]} is for noise='low-rank', and this is noise={self.noise!r}")
        self.check_cluster(self.workers)
        self.check_logs()
        if self.engine == "ray" and self.executor == "threads":
            raise UsageError("executor is 'threads', and a Ray engine has worker processes; leave it out")
        if self.timeout is not None and (self.workers == 0 or self.executor == "threads"):
            raise UsageError("timeout needs worker processes, since only a process can be ended; use workers=1 or more")

    def check_new(self) -> None:
        """Refuse what only earlier versions accepted. Raises UsageError."""
        if self.noise == "low-rank" and self.strategy != "openai-es":
            raise UsageError(
                f"strategy is {self.strategy!r}, and noise='low-rank' has a strategy of its own; leave strategy out"
            )


LOW_RANK_OPTIONS = ("rank", "vectors", "dtype", "int8", "anchor_decay")  # of an evolution, for low-rank noise only
EVOLUTION_RESUMABLE = frozenset(
    {f.name for group in (StopOptions, ClusterOptions, LogOptions) for f in fields(group)}
    | {"checkpoint_every", "keep", "quiet", "inexact", "workers", "executor", "timeout", "final"}
)
