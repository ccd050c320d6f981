"""What a sweep is: environment, fixed options, space, sampler, pruner, budget. Written once, read by all that join."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Literal

import tomli_w

from esker.algorithms import registry
from esker.config.options import OF_OWN
from esker.config.resume import RESUMABLE
from esker.errors import UsageError
from esker.sweep.space import Choices, Space, from_table, to_table
from esker.system.words import count

Sampler = Literal["tpe", "random", "grid"]
Pruner = Literal["hyperband", "asha", "none"]
Storage = Literal["journal", "sqlite"]
Unit = Literal["env_steps", "training_steps", "generations", "seconds"]
STOPS = ("steps", "generations", "wall_time", "goal", "patience")
# How a process works, not what a trial computes: each process that joins has its own.
PERSONAL = (RESUMABLE - set(STOPS)) | {"run_dir"}


@dataclass(frozen=True)
class Budget:
    """The largest budget of a trial, and its budget at the first rung of pruning."""

    unit: Unit
    minimum: int
    maximum: int

    def spent(self, row: Mapping[str, Any]) -> int:
        """How much of the budget a run has used at a row of its journal."""
        if self.unit in ("env_steps", "training_steps"):
            return int(row[self.unit])
        return int(row["generation"]) + 1 if self.unit == "generations" else int(row["wall_time"])

    def text(self, amount: int) -> str:
        """`1 generation`, `5,000 training steps`."""
        return count(amount, self.unit.replace("_", " ").removesuffix("s"))


@dataclass(frozen=True)
class SweepPlan:
    """The part of a sweep that never changes."""

    name: str
    env: str
    algo: str
    preset: str
    space: Space
    budget: Budget
    sampler: Sampler = "tpe"
    pruner: Pruner = "hyperband"
    reduction: int = 3
    storage: Storage = "journal"
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> type[Any]:
        """The configuration that trials have."""
        return registry.options_of(self.algo)

    def to_toml(self) -> str:
        """For `sweep.toml`."""
        values = {**vars(self), "budget": vars(self.budget), "space": to_table(self.space)}
        return tomli_w.dumps(values)

    @classmethod
    def read(cls, path: Path) -> SweepPlan:
        """The plan of a sweep folder. Any other file raises UsageError."""
        try:
            values = tomllib.loads(path.read_text())
            kind = registry.options_of(values["algo"])
            values |= {"space": from_table(values["space"], kind), "budget": Budget(**values["budget"])}
            return cls(**values)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{str(path)!r} cannot be read: {error}".replace("\n", " ")) from error

    def refuse_others(self, asked: Mapping[str, Any]) -> None:
        """Refuse to join with a request that differs from this plan. Only given values are compared."""
        for name, value in asked.items():
            mine = getattr(self, name)
            if mine != value:
                raise UsageError(
                    f"sweep {self.name!r} exists with other {name} ({_brief(mine)}, now {_brief(value)}); "
                    f"leave it out to join the sweep, or choose another --name"
                )

    def refuse_strategies(self) -> None:
        """Refuse strategies that are other algorithms, which sweeps of earlier versions may have. Raises UsageError."""
        swept = self.space.get("strategy")
        for strategy in (self.options.get("strategy"), *(swept.values if isinstance(swept, Choices) else ())):
            if strategy in OF_OWN and strategy != self.algo:
                raise UsageError(
                    f"sweep {self.name!r} has strategy {strategy}, an algorithm with options of its own; "
                    f"begin a sweep with --algo {strategy} under another --name"
                )


def plain(value: Any) -> Any:
    """An option's value as TOML can hold it."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return "none" if value is None else list(value) if isinstance(value, tuple) else value


def _brief(value: Any) -> str:
    text = ", ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)
    return text if len(text) < 60 else text[:57] + "…"
