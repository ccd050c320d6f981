"""The array functions of the definitions for torch tensors, on any device. To rounding what NumPy's give."""

from __future__ import annotations

from typing import Any

import torch

Tensor = torch.Tensor


class TorchArrays:
    """torch; constants of the model live on `device` in `dtype`."""

    def __init__(self, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self.device, self.dtype = device, dtype

    def clip(self, values: Tensor, low: float, high: float) -> Tensor:
        return torch.clip(values, low, high)

    def square(self, values: Tensor) -> Tensor:
        return torch.square(values)

    def power2(self, values: Tensor) -> Tensor:
        return torch.square(values)

    def sin(self, values: Tensor) -> Tensor:
        return torch.sin(values)

    def cos(self, values: Tensor) -> Tensor:
        return torch.cos(values)

    def library_cos(self, values: Tensor) -> Tensor:
        return torch.cos(values)

    def where(self, condition: Tensor, yes: Tensor | float, no: Tensor) -> Tensor:
        return torch.where(condition, yes, no)

    def abs(self, values: Tensor) -> Tensor:
        return torch.abs(values)

    def sum(self, values: Tensor) -> Tensor:
        return values.flatten(1).sum(dim=1)

    def norm(self, vectors: Tensor) -> Tensor:
        return torch.linalg.vector_norm(vectors, dim=1)

    def weighted_sum(self, weights: Tensor, points: Tensor) -> Tensor:
        return torch.einsum("b,nbj->nj", weights, points)

    def all_finite(self, values: Tensor) -> Tensor:
        return torch.isfinite(values).all(dim=1)

    def all(self, values: Tensor) -> Tensor:
        return values.all(dim=1)

    def constant(self, values: Any) -> Tensor:
        return torch.tensor(values, device=self.device, dtype=self.dtype)
