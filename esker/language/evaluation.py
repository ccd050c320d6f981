"""Evaluating a language model: the scores of its completions, and its loss on plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from esker.language.arguments import texts_of
from esker.language.generation import Decoding, Generator, Speedups
from esker.language.models import LanguageModel
from esker.language.prompts import Tokens, stop_ids
from esker.language.scoring import Score, score_rows
from esker.language.task import HeldOut, complete, held_out

ROWS = 256  # sequences at a time


def evaluate(
    language: LanguageModel,
    prompts: Tokens,
    score: Score,
    max_new_tokens: int,
    stop: Sequence[str] = (),
    right: float = 1.0,
    examples: int = 4,
) -> HeldOut:
    """The unperturbed model: mean score, accuracy and examples of its most likely completions."""
    decoding = Decoding(max_new_tokens, stop_ids(language, stop), language.pad_id)
    make = Generator(language.model, min(ROWS, len(prompts)), prompts.ids.shape[1], decoding, Speedups(capture=False))
    rows = complete(make, prompts).cpu()
    scored = score_rows(language, prompts.texts, torch.arange(len(prompts)), rows, score, stop)
    return held_out(0, scored, prompts, right, examples)


def text_loss(language: LanguageModel, texts: Iterable[str], length: int = 256) -> float:
    """Mean negative log-likelihood of a token of plain text, in windows of `length` tokens: what forgetting raises."""
    device, total, count = next(language.model.parameters()).device, 0.0, 0
    with torch.no_grad():
        for text in texts_of("texts", texts):
            ids = torch.tensor(language.tokenizer(text)["input_ids"], device=device)
            for start in range(0, len(ids) - 1, length):
                window = ids[start : start + length + 1]
                if len(window) < 2:
                    continue
                logits = language.model(input_ids=window[None, :-1]).logits[0].float()
                total += float(torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum"))
                count += len(window) - 1
    return total / max(count, 1)
