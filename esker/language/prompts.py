"""Prompts as tokens, padded on the left; completions as text, cut at a stop string."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from esker.errors import UsageError
from esker.language.arguments import texts_of
from esker.language.models import LanguageModel


@dataclass(frozen=True)
class Tokens:
    """Prompts as (prompts, length) token ids; `valid` is False on padding."""

    texts: tuple[str, ...]
    ids: torch.Tensor
    valid: torch.Tensor

    def __len__(self) -> int:
        return len(self.texts)

    def to(self, device: torch.device) -> Tokens:
        """The same on a device."""
        return Tokens(self.texts, self.ids.to(device), self.valid.to(device))


def chat(language: LanguageModel, prompt: str, system: str | None = None) -> str:
    """A prompt as the user's turn of a chat. A tokenizer without a chat template raises UsageError."""
    if not getattr(language.tokenizer, "chat_template", None):
        raise UsageError("the tokenizer has no chat template; use chat=False and write the whole prompt")
    turns = [{"role": "user", "content": prompt}]
    if system is not None:
        turns.insert(0, {"role": "system", "content": system})
    return str(language.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))


def tokenize(
    language: LanguageModel,
    prompts: Iterable[str],
    new_tokens: int,
    template: Any = None,
    length: int | None = None,
    name: str = "prompts",
) -> Tokens:
    """Prompts through a template (a function of the prompt), padded to the longest or to `length`.

    No prompts, an empty one, or one that leaves no room for its completion raise UsageError, by the argument's `name`.
    """
    texts = texts_of(name, prompts)
    if not texts:
        raise UsageError(f"{name} is empty; expected at least one prompt")
    whole = [template(text) for text in texts] if template else texts
    return encode(language, texts, whole, new_tokens, template is None, length)


def encode(
    language: LanguageModel,
    prompts: Sequence[str],
    whole: Sequence[str],
    new_tokens: int,
    special: bool,
    length: int | None = None,
) -> Tokens:
    """Prompts whose `whole` text is what the model reads, with the tokenizer's special tokens or without."""
    found = language.tokenizer(list(whole), add_special_tokens=special)["input_ids"]
    longest = max(range(len(found)), key=lambda i: len(found[i]))
    if len(found[longest]) + new_tokens > language.context:
        raise UsageError(
            f"prompt {prompts[longest][:40]!r}… has {len(found[longest])} tokens and gets {new_tokens} more; "
            f"the model's context is {language.context}"
        )
    width = max(length or 0, len(found[longest]))
    ids = torch.full((len(found), width), language.pad_id)
    valid = torch.zeros(len(found), width, dtype=torch.bool)
    for row, tokens in enumerate(found):
        ids[row, width - len(tokens) :] = torch.tensor(tokens)
        valid[row, width - len(tokens) :] = True
    return Tokens(tuple(prompts), ids, valid)


def stop_ids(language: LanguageModel, stop: Sequence[str]) -> tuple[int, ...]:
    """Tokens that end a completion: the model's own, and every token whose text contains a stop string."""
    found = set(language.end_ids)
    if stop:
        size = len(language.tokenizer)
        texts = language.tokenizer.batch_decode([[number] for number in range(size)], clean_up_tokenization_spaces=False)
        found |= {number for number, text in enumerate(texts) if any(part in text for part in stop)}
    return tuple(sorted(found))


def decode(language: LanguageModel, rows: torch.Tensor, stop: Sequence[str]) -> list[str]:
    """Completions as text without special tokens, cut before the first stop string."""
    ends = set(language.end_ids)
    cut = []
    for row in rows.tolist():
        end = next((place for place, token in enumerate(row) if token in ends), len(row))
        cut.append(row[:end])
    texts = language.tokenizer.batch_decode(cut, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return [_before(text, stop) for text in texts]


def _before(text: str, stop: Sequence[str]) -> str:
    places = [place for place in (text.find(part) for part in stop) if place >= 0]
    return text[: min(places)] if places else text
