"""Scores of completions: each different completion of a prompt is decoded and scored once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from esker.errors import RunError
from esker.language.models import LanguageModel
from esker.language.prompts import decode

Score = Callable[[str, str], float]  # (prompt, completion) -> the higher the better; called once for equal arguments


@dataclass(frozen=True)
class Scored:
    """The different completions of some rows, and which row has which."""

    prompts: list[int]
    completions: list[str]
    values: NDArray[np.float64]
    inverse: NDArray[np.int64]

    @property
    def by_row(self) -> NDArray[np.float64]:
        """The score of every row."""
        return self.values[self.inverse]


def score_rows(
    language: LanguageModel,
    texts: Sequence[str],
    owners: torch.Tensor,
    rows: torch.Tensor,
    score: Score,
    stop: Sequence[str],
) -> Scored:
    """Score rows of tokens; `owners` says which prompt each belongs to. A score that is not a number raises RunError."""
    keyed = torch.cat([owners[:, None], rows], 1)
    different, inverse = torch.unique(keyed, dim=0, return_inverse=True)
    different = different.cpu()
    prompts = different[:, 0].tolist()
    completions = decode(language, different[:, 1:], stop)
    values = np.array([_number(score, texts[p], c) for p, c in zip(prompts, completions, strict=True)])
    return Scored(prompts, completions, values, inverse.cpu().numpy())


def _number(score: Score, prompt: str, completion: str) -> float:
    value = score(prompt, completion)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise RunError(
            f"score returned {value!r} for {completion!r}, the completion of {prompt!r}; expected a number"
        ) from None
    if not math.isfinite(number):
        raise RunError(f"score returned {number} for {completion!r}, the completion of {prompt!r}; expected a finite number")
    return number
