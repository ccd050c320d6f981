"""Attention for many short sequences: query heads that share a key-value head are its queries, so nothing is repeated."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from esker.errors import UsageError

NAME = "esker_grouped"
UNKNOWN = {"softcap": "scores that are capped (softcap)", "s_aux": "attention sinks (s_aux)"}


def grouped_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """(rows, n, heads, size) from (rows, heads, n, size) queries; the mask is added, (rows, 1, n, keys).

    Scores that are capped, or attention with sinks, raise UsageError: both would be left out silently.
    """
    unknown = [name for name in ("softcap", "s_aux") if others.get(name) is not None]
    if unknown:
        raise UsageError(f"the model's attention has {UNKNOWN[unknown[0]]}, which generation here does not compute")
    rows, heads, n, size = query.shape
    shared = key.shape[1]
    groups = heads // shared
    queries = query.reshape(rows, shared, groups * n, size)
    if n > 1:
        attention_mask = attention_mask.expand(rows, groups, n, -1).reshape(rows, 1, groups * n, -1)
    mask = attention_mask.expand(rows, shared, groups * n, -1)
    out = F.scaled_dot_product_attention(queries, key, value, attn_mask=mask, scale=scaling)
    return out.reshape(rows, heads, n, size).transpose(1, 2).contiguous(), None


@contextlib.contextmanager
def attending_in_groups(model: nn.Module) -> Iterator[None]:
    """Let a transformers model use this attention within the context; masks must be given in full, as `Generator` does."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, grouped_attention)
    config: Any = model.config
    before, config._attn_implementation = config._attn_implementation, NAME
    try:
        yield
    finally:
        config._attn_implementation = before
