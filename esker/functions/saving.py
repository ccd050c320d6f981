"""Writing a model's weights to a file, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from esker.errors import RunError, UsageError, first_line


def check_path(path: Path) -> None:
    """Refuse, before any work is done, a path that cannot be written. Raises UsageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"save_path {str(path)!r} cannot be written: {error.strerror}") from error
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(f"save_path {str(path)!r} cannot be written; expected a file in a writable folder")


def save(path: Path, model: Any) -> None:
    """A module's state_dict, or the tensors as given: as safetensors where the name says so, else by `torch.save`."""
    _write_whole(path, lambda temporary: _write(temporary, model, path.suffix == ".safetensors"))


def pickle_weights(path: Path, weights: list[torch.Tensor]) -> None:
    """A list of tensors that `pickle.load` reads, as EvolutionModule wrote it. esker itself never reads one."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            pickle.dump(weights, file)

    _write_whole(path, write)


def _write(path: Path, model: Any, safetensors: bool) -> None:
    if not safetensors:
        with path.open("wb") as file:  # by a name without a suffix torch would not make an archive
            torch.save(model.state_dict() if isinstance(model, nn.Module) else model, file)
        return
    from safetensors.torch import save_file, save_model

    if isinstance(model, nn.Module):
        save_model(model, str(path))  # knows about tied weights
    else:
        parts = [model] if isinstance(model, torch.Tensor) else model
        save_file({str(i): part.detach().clone().contiguous() for i, part in enumerate(parts)}, str(path))


def _write_whole(path: Path, write: Callable[[Path], None]) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        write(temporary)
        temporary.replace(path)
    except (OSError, RuntimeError) as error:  # torch.save raises RuntimeError where others raise OSError
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise RunError(f"the weights could not be saved to {str(path)!r}: {first_line(error)}") from error
