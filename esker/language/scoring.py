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

FLOOR = 0.1  # of a prompt's spread, so that a single lucky member does not decide
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


def member_scores(table: NDArray[np.float64], balance: bool) -> NDArray[np.float64]:
    """A score for each member from (members, prompts) scores: their mean, or with prompts weighted by 1/(spread + 0.1).

    Where nearly all members agree on a prompt, its mean hides the few that differ; weighted, they count.
    """
    if not balance:
        return table.mean(1)
    weights = 1 / (table.std(0) + FLOOR)
    return table.mean() + ((table - table.mean(0)) * weights).sum(1) / weights.sum()


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
    except Exception:  # a user's object raises what it likes, also when it is shown
        raise RunError(
            f"score returned a {type(value).__name__} for {completion!r}, the completion of {prompt!r}; expected a number"
        ) from None
    if not math.isfinite(number):
        raise RunError(f"score returned {number} for {completion!r}, the completion of {prompt!r}; expected a finite number")
    return number
