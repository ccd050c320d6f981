"""Write a language model as transformers' folder, or what changed in it as a low-rank adapter in peft's format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

from esker.errors import UsageError
from esker.language.models import LanguageModel


def save_folder(language: LanguageModel, folder: Path) -> Path:
    """A folder that `AutoModelForCausalLM.from_pretrained` and `esker.language.load` read. A file raises UsageError."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is a file; expected a folder to write the model into")
    language.model.save_pretrained(folder)
    language.tokenizer.save_pretrained(folder)
    return folder


def save_adapter(
    language: LanguageModel, start: Mapping[str, torch.Tensor], folder: Path, rank: int, tolerance: float, base: str
) -> float:
    """The change since `start` as an adapter of a rank; returns the share of its norm that is left out.

    A generation's update has rank N·r, so after some generations the sum of them has full rank and is truncated by its
    singular values. More than `tolerance` left out, or a change outside linear layers, raises UsageError.
    """
    if rank < 1:
        raise UsageError(f"rank is {rank}; expected at least 1")
    layers = {f"{name}.weight": part for name, part in language.model.named_modules() if isinstance(part, nn.Linear)}
    tensors, left, whole = {}, 0.0, 0.0
    for name, value in language.model.named_parameters():
        change = (value.detach() - start[name].to(value)).float()
        if not change.any():
            continue
        if name not in layers:
            raise UsageError(
                f"{name!r} has changed and is not a linear layer's weight; an adapter cannot hold it: use save()"
            )
        u, s, v = torch.linalg.svd(change, full_matrices=False)
        kept = min(rank, len(s))
        left, whole = left + float((s[kept:] ** 2).sum()), whole + float((s**2).sum())
        root, path = s[:kept].sqrt(), f"base_model.model.{name.removesuffix('.weight')}"
        tensors[f"{path}.lora_A.weight"] = _padded(root[:, None] * v[:kept], rank, 0)
        tensors[f"{path}.lora_B.weight"] = _padded(u[:, :kept] * root, rank, 1)
    if not tensors:
        raise UsageError("nothing has changed, so there is no adapter to write")
    error = (left / whole) ** 0.5
    if error > tolerance:
        raise UsageError(
            f"an adapter of rank {rank} leaves out {error:.1%} of the change, more than tolerance={tolerance:.1%}; "
            "raise rank or tolerance, or write the whole model with save()"
        )
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps(_config(tensors, rank, base), indent=2))
    return error


def _padded(factor: torch.Tensor, rank: int, axis: int) -> torch.Tensor:
    """Zeros up to the adapter's rank, where a matrix has fewer singular values."""
    missing = rank - factor.shape[axis]
    size = (missing, factor.shape[1]) if axis == 0 else (factor.shape[0], missing)
    return torch.cat([factor, factor.new_zeros(size)], axis).cpu().contiguous() if missing else factor.cpu().contiguous()


def _config(tensors: Mapping[str, torch.Tensor], rank: int, base: str) -> dict[str, Any]:
    modules = {name.removeprefix("base_model.model.").rpartition(".lora_")[0] for name in tensors}
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": rank,
        "lora_alpha": rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": sorted(modules),
    }
