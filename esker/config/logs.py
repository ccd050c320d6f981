"""The options of loggers: where a run is also logged to."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from esker.config.option import option
from esker.errors import UsageError

Backend = Literal["tensorboard", "wandb", "csv"] | str
LOGGERS = "esker.loggers"  # the entry-point group of other packages' loggers


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """Logs"""

    log: tuple[Backend, ...] = option((), "also log to tensorboard, wandb, csv or module:Class", group=LOGGERS)
    wandb_project: str | None = option(None, "W&B: project (default: esker)")
    wandb_name: str | None = option(None, "W&B: name of the run (default: its folder's name)")
    wandb_tags: tuple[str, ...] = option((), "W&B: tag, or tags as a,b; repeatable", repeatable=True)
    wandb_entity: str | None = option(None, "W&B: user or team (default: yours)")
    wandb_group: str | None = option(None, "W&B: group")
    wandb_id: str | None = option(None, "W&B: id of the run (default: made once, and kept in the run folder)")
    wandb_mode: Literal["online", "offline"] | None = option(None, "W&B: send, or keep in the run folder for `wandb sync`")

    def check_logs(self) -> None:
        """Refuse W&B options that nothing would read. Raises UsageError."""
        given = [f.name for f in fields(LogOptions) if f.name.startswith("wandb_") and getattr(self, f.name)]
        if given and "wandb" not in self.log:
            flag = "--" + given[0].replace("_", "-")
            raise UsageError(f"{given[0]} is given without W&B; add --log wandb, or unset it with {flag} none")
