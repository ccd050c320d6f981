"""Keys and values of a fixed number of sequences, in place: what a captured generation step needs of a cache."""

from __future__ import annotations

from typing import Any

import torch


class Slot:
    """One layer's keys and values, (rows, heads, length, size)."""

    def __init__(self, like: torch.Tensor, length: int) -> None:
        rows, heads, _, size = like.shape
        self.keys = like.new_zeros(rows, heads, length, size)
        self.values = like.new_zeros(rows, heads, length, size)


class FixedCache:
    """What transformers calls `past_key_values`: the prompt is written at once, then a token at `place` in every step."""

    is_compileable = True

    def __init__(self, length: int, device: torch.device) -> None:
        self.length = length
        self.slots: dict[int, Slot] = {}
        self.place = torch.zeros(1, dtype=torch.int64, device=device)  # where the next token's keys go
        self.filling = True  # with the prompt

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int | Slot, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store new keys and values; returns those to attend to: the prompt's own, or everything so far."""
        slot = layer_idx if isinstance(layer_idx, Slot) else self.slots.get(layer_idx)
        if slot is None:
            assert isinstance(layer_idx, int)
            slot = self.slots[layer_idx] = Slot(keys, self.length)
        if self.filling:
            slot.keys[:, :, : keys.shape[2]] = keys
            slot.values[:, :, : keys.shape[2]] = values
            return keys, values
        slot.keys.index_copy_(2, self.place, keys)
        slot.values.index_copy_(2, self.place, values)
        return slot.keys, slot.values

    def get_seq_length(self, *_: Any) -> int:
        """Models ask for this only where positions are not given to them."""
        return 0
