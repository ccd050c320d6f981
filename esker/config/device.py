"""Options of a device: where policies run and worlds are stepped, unless worker processes do both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from esker.config.option import option
from esker.errors import UsageError

ON_CPU = "cpu"  # the world that worker processes step


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Engine"""

    device: str | None = option(
        None,
        "cpu, cuda or cuda:N: run policies there, and worlds if they can (default: worker processes do)",
    )
    world: str | None = option(
        None,
        "who steps for a device: torch, warp or module:make_world on it, or cpu: worker processes (default: what fits)",
    )
    deterministic: bool = option(False, "bits that repeat in MuJoCo Warp, too")

    @property
    def on_device(self) -> bool:
        """Whether policies run on a device, instead of in worker processes."""
        return self.world is not None or self.device not in (None, "cpu")

    @property
    def worlds_on_device(self) -> bool:
        """Whether worlds are tensors there, too; known once the world is chosen."""
        return self.on_device and self.world != ON_CPU

    def check_world(self, config: Any) -> None:
        """Refuse options that only worker processes have, and promises that cannot be kept. Raises UsageError."""
        if self.deterministic and config.vectorizer == "envpool":
            raise UsageError("vectorizer is 'envpool', which does not repeat its bits; leave it out, or --deterministic")
        if not self.on_device:
            return
        if config.engine == "ray":
            raise UsageError("worlds on a device are for --engine local; leave --world and --device out, or --engine")
        if self.world in (None, ON_CPU):
            return
        for name, default in {"vectorizer": None, "fresh_environments": False}.items():
            if getattr(config, name) != default:
                raise UsageError(f"{name} is for environments in worker processes; use --world cpu, or leave it out")


def check_device(device: str) -> None:
    """Refuse a device that does not exist. Raises UsageError."""
    import torch

    try:
        kind = torch.device(device)
    except RuntimeError as error:
        raise UsageError(f"device is {device!r}; expected cpu, cuda or cuda:N") from error
    if kind.type not in ("cpu", "cuda"):
        raise UsageError(f"device is {device!r}; expected cpu, cuda or cuda:N")
    if kind.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device is {device!r}, and this machine's torch has no CUDA; use --device cpu")
    if kind.type == "cuda" and (kind.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"device is {device!r}, and this machine has {torch.cuda.device_count()} GPUs")


def device_name(device: str) -> str:
    """The name of a device, for people."""
    import torch

    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device
