"""Prompts that the unperturbed model gets wrong: where most prompts are solved, they are those that tell members apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from esker.functions.lowrank.batches import evaluation_copy
from esker.functions.lowrank.int8 import expanded
from esker.functions.lowrank.members import LowRankMembers
from esker.language.generation import Decoding, Generator, Speedups
from esker.language.models import LanguageModel

CANDIDATES = 256  # prompts that the unperturbed model completes, to find those that it gets wrong


class Center:
    """The unperturbed model with its own layers and a small batch, in the type that members are evaluated in."""

    def __init__(
        self,
        language: LanguageModel,
        members: LowRankMembers,
        rows: int,
        length: int,
        decoding: Decoding,
        capture: bool,
        note: Callable[[str], None],
    ) -> None:
        device = next(members.module.parameters()).device
        self.module = members.module
        self._model = evaluation_copy(language.model, device, members.loaded.dtype)
        self.make = Generator(self._model, rows, length, replace(decoding, temperature=0.0), Speedups(capture), note)

    def read(self) -> Generator:
        """The generator, with the weights that the members' module has now."""
        with torch.no_grad():
            for own, theirs in zip(self._model.parameters(), self.module.parameters(), strict=True):
                own.copy_(expanded(theirs))
        return self.make


def focused(pool: NDArray[np.int64], wrong: NDArray[np.bool_], count: int, share: float) -> NDArray[np.int64]:
    """Some of a pool of prompts: this share from the wrong ones, as far as there are enough, and the others as they come."""
    hard = pool[wrong][: round(share * count)]
    others = pool[~np.isin(pool, hard)]
    return np.sort(np.concatenate([hard, others[: count - len(hard)]]))
