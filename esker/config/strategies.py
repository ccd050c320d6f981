"""The typed configuration of the other synchronous strategies: PGPE, SNES, sep-CMA-ES and CMA-ES."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from esker.config.option import option
from esker.config.options import OptimizerName, Shaping, SynchronousConfig
from esker.errors import UsageError

RestartKind = Literal["ipop", "bipop"]


@dataclass(frozen=True, kw_only=True)
class FullNoiseConfig(SynchronousConfig):
    """What the strategies with a scale for every parameter, or a covariance, have in common."""

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        super().check()
        if self.noise == "low-rank":
            raise UsageError(
                f"noise is low-rank, and {self.algo} needs noise for every parameter; use --noise table or counter"
            )


@dataclass(frozen=True, kw_only=True)
class PGPEOptions:
    """Strategy"""

    population: int = option(200, "members per generation, in mirrored pairs", low=2, high=10_000_000)
    sigma: float = option(0.1, "standard deviation of every parameter, at first", above=0, high=1e6)
    lr: float | None = option(None, "learning rate (default: clipup half its max_speed, others 0.01)", above=0, high=1e6)
    optimizer: OptimizerName = option("clipup", "optimizer that moves the centre")
    momentum: float | None = option(
        None, "momentum of sgd and rmsprop (default: 0) and of clipup (default: 0.9)", low=0, high=1
    )
    max_speed: float | None = option(
        None, "longest step of clipup (default: twice lr, else a fifteenth of the deviations' length)", above=0
    )
    weight_decay: float = option(0.0, "weight decay (L2; adamw: decoupled)", low=0, high=1e6)
    lr_decay: float = option(
        1.0, "multiply the learning rate, and clipup's maximum speed, by this after every generation", above=0, high=2
    )
    stdev_lr: float = option(0.1, "learning rate of the standard deviations", above=0, high=1e6)
    stdev_max_change: float | None = option(0.2, "largest change of a deviation in a generation, as a share of it", above=0)
    shaping: Shaping = option("centered_rank", "how fitness becomes weights")


@dataclass(frozen=True, kw_only=True)
class PGPEConfig(PGPEOptions, FullNoiseConfig):
    """Everything that decides a `pgpe` run."""

    strategy: ClassVar[str] = "pgpe"
    algo: str = option("pgpe", "algorithm")

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        super().check()
        if self.population % 2:
            raise UsageError(
                f"population is {self.population}; pgpe samples in pairs: use --population {self.population + 1}"
            )


@dataclass(frozen=True, kw_only=True)
class SNESOptions:
    """Strategy"""

    population: int | None = option(
        None, "members per generation (default: 4 + 3 ln d for d parameters)", low=2, high=10_000_000
    )
    sigma: float = option(0.1, "standard deviation of every parameter, at first", above=0, high=1e6)
    lr: float = option(1.0, "learning rate of the centre", above=0, high=1e6)
    stdev_lr: float | None = option(None, "learning rate of the deviations (default: (3 + ln d)/(5√d))", above=0, high=1e6)
    antithetic: bool = option(False, "sample members in mirrored pairs")
    shaping: Shaping = option("log_utility", "how fitness becomes weights")


@dataclass(frozen=True, kw_only=True)
class SNESConfig(SNESOptions, FullNoiseConfig):
    """Everything that decides a `snes` run."""

    strategy: ClassVar[str] = "snes"
    algo: str = option("snes", "algorithm")

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        super().check()
        if self.antithetic and (self.population or 0) % 2:
            raise UsageError(f"population is {self.population}, and antithetic sampling needs an even number")


@dataclass(frozen=True, kw_only=True)
class CMAOptions:
    """Strategy"""

    population: int | None = option(
        None, "members per generation (default: 4 + 3 ln d for d parameters)", low=2, high=10_000_000
    )
    sigma: float = option(0.3, "step size, at first", above=0, high=1e6)
    lr: float = option(1.0, "learning rate of the centre", above=0, high=1e6)
    restarts: int = option(0, "restarts elsewhere when progress ends, at most", low=0)
    restart_kind: RestartKind = option(
        "ipop", "restart with doubled populations (ipop), or large and small ones in turn (bipop)"
    )


@dataclass(frozen=True, kw_only=True)
class SepCMAConfig(CMAOptions, FullNoiseConfig):
    """Everything that decides a `sep-cma` run."""

    strategy: ClassVar[str] = "sep-cma"
    algo: str = option("sep-cma", "algorithm")


@dataclass(frozen=True, kw_only=True)
class CMAConfig(CMAOptions, FullNoiseConfig):
    """Everything that decides a `cma` run."""

    strategy: ClassVar[str] = "cma"
    algo: str = option("cma", "algorithm")
    active: bool = option(False, "give bad members negative weights in the covariance (active CMA-ES)")


def own_defaults(strategy: Any) -> dict[str, Any]:
    """The defaults of a strategy whose steps are of another scale than those of an optimizer; none for others."""
    groups: dict[str, type[Any]] = {"snes": SNESOptions, "sep-cma": CMAOptions, "cma": CMAOptions}
    shared = ("sigma", "lr", "antithetic", "shaping")
    if not isinstance(strategy, str) or strategy not in groups:
        return {}
    return {f.name: f.default for f in fields(groups[strategy]) if f.name in shared}
