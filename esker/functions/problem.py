"""A model and the reward of its members: what an environment is to other runs, in Python or found again by its paths."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from platform import python_version
from typing import Any

import numpy as np
import torch

from esker.config.evolution import EvolutionConfig
from esker.engines.remote.server import WorkServer
from esker.errors import UsageError
from esker.functions.lowrank.parts import kept_layout
from esker.functions.parameters import Filter, FlatParameters, Subject, layout_of
from esker.functions.reward import Function, label
from esker.noise.fingerprint import fingerprint
from esker.system.imports import import_callable, path_of

TENSOR, TENSORS = "tensor", "tensors"
IN_PYTHON = "continue it in Python with esker.Evolution.resume(run_dir, model, reward)"


@dataclass(frozen=True)
class Problem:
    """What is evolved and how it is scored. `maker` is the path of the function that made the model, if one did."""

    model: Subject
    reward: Function | None = None
    reward_batch: Function | None = None
    params: Filter | None = None
    test_kwargs: Mapping[str, Any] = field(default_factory=dict)
    server: WorkServer | None = None
    maker: str | None = None

    def names(self) -> dict[str, str]:
        """Reward and model as a configuration names them: import paths where there are some."""
        function = self.reward if self.reward_batch is None else self.reward_batch
        name = "" if function is None else label(function).rpartition(".")[2]
        plain = f"reward {name}" if name.isidentifier() else "reward function"
        return {"env": path_of(function) or plain, "model": self.maker or _kind(self.model)}

    def flat(self, config: EvolutionConfig) -> FlatParameters:
        """What moves, as one vector. Nothing to move, or what cannot be perturbed, raises UsageError."""
        layout = layout_of(self.model, self.params)
        if config.noise != "low-rank":
            return FlatParameters(self.model, layout)
        if not isinstance(self.model, torch.nn.Module):
            raise UsageError(f"noise='low-rank' perturbs the layers of a module, and model is a {type(self.model).__name__}")
        return FlatParameters(self.model, kept_layout(self.model, layout, config.vectors))

    def about(self, flat: FlatParameters, device: torch.device, low_rank: bool) -> dict[str, Any]:
        """What a run folder must remember of it, and of the machine."""
        from esker import __version__

        versions = {"python": python_version(), "numpy": np.__version__, "torch": torch.__version__}
        return {
            "parameters": flat.describe(),
            "types": [str(tensor.dtype).removeprefix("torch.") for tensor in flat.tensors],
            "start": start_of(flat),
            "still": still(flat),
            "batched": self.reward_batch is not None,
            "fingerprint": machine(device, low_rank),
            "started": time.time(),
            "versions": {"esker": __version__, **versions},
        }


def made(model: Any) -> tuple[Any, str | None]:
    """A model, and the import path of what made it: a function or class may be given in its place."""
    if isinstance(model, torch.nn.Module | torch.Tensor) or not callable(model):
        return model, None
    return model(), path_of(model)


def start_of(flat: FlatParameters) -> str:
    """A digest of the values that move."""
    return hashlib.sha256(flat.read().tobytes()).hexdigest()


def machine(device: torch.device, low_rank: bool) -> str:
    """What the bits of an update depend on: this machine, and the device where that is where updates are computed."""
    on_gpu = low_rank and device.type == "cuda"
    return fingerprint(None) + (f" {torch.cuda.get_device_name(device)}" if on_gpu else "")


def remedy(config: EvolutionConfig, path: Path) -> str:
    """How to continue a run that was interrupted or failed."""
    by_command = f"esker resume {path}, or " if importable(config) else ""
    return f"continue with: {by_command}esker.Evolution.resume({str(path)!r}, model, reward)"


def importable(config: EvolutionConfig) -> bool:
    """Whether a run's reward and model can be found again without Python."""
    return ":" in config.env and (":" in config.model or config.model in (TENSOR, TENSORS))


def again(config: EvolutionConfig, about: Mapping[str, Any]) -> Problem:
    """The problem of a run that was begun with what can be imported. Any other raises UsageError."""
    if ":" not in config.env:
        raise UsageError(f"this is a run of esker.Evolution, whose reward ({config.env}) only Python has; {IN_PYTHON}")
    if ":" not in config.model and config.model not in (TENSOR, TENSORS):
        raise UsageError(
            f"this is a run of esker.Evolution, whose model ({config.model}) only Python has; {IN_PYTHON}, "
            "or begin the next one with a function that makes the model: esker.Evolution(make_model, reward)"
        )
    function = import_callable(config.env, "reward")
    form: dict[str, Any] = {"reward_batch" if about.get("batched") else "reward": function}
    if config.model in (TENSOR, TENSORS):
        shapes = zip(about["parameters"], about["types"], strict=True)
        tensors = [torch.zeros(shape, dtype=getattr(torch, kind)) for (_, shape), kind in shapes]
        return Problem(tensors[0] if config.model == TENSOR else tensors, **form)
    model = import_callable(config.model, "model")()
    names = [str(name) for name, _ in about["parameters"]]
    problem = Problem(model, **form, params=names, maker=config.model)
    if still(problem.flat(config)) != about.get("still"):
        raise UsageError(
            f"what {config.model} makes has other frozen parameters or buffers than the run's model; {IN_PYTHON}"
        )
    return problem


def _kind(model: Any) -> str:
    if isinstance(model, torch.nn.Module):
        return f"module {type(model).__name__}"
    return TENSOR if isinstance(model, torch.Tensor) else TENSORS


def still(flat: FlatParameters) -> str:
    """A digest of what does not move: the module's buffers and its other parameters."""
    found = hashlib.sha256()
    if isinstance(flat.subject, torch.nn.Module):
        for name, tensor in (*flat.subject.named_parameters(), *flat.subject.named_buffers()):
            if name not in flat.layout.names:
                found.update(
                    name.encode() + tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
                )
    return found.hexdigest()
