"""What `LanguageEvolution` is asked for: arguments that do not fit are refused, each in one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MappingView, Set
from numbers import Integral, Real
from typing import Any

from esker.errors import UsageError

ELSEWHERE = {
    "evaluations_per_member": "a member is evaluated once, on more prompts: use prompts_per_generation",
    "on_error": "a score returns a number for every completion",
    "noise": "noise is low-rank here",
    "reward": "give score(prompt, completion)",
    "reward_batch": "give score(prompt, completion)",
}


def count_of(name: str, value: Any) -> int:
    """A count as Python's number. What is no whole number of at least 1 raises UsageError."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{name} is {value!r}; expected a whole number of at least 1")
    return int(value)


def check_choices(temperature: Any, focus: Any, right: Any, options: Mapping[str, Any]) -> None:
    """Refuse numbers that are none, and options of `esker.Evolution` without effect here. Raises UsageError."""
    if not _is_number(temperature) or not temperature >= 0:
        raise UsageError(f"temperature is {temperature!r}; expected a number of at least 0")
    if not _is_number(focus) or not 0 <= focus <= 1:
        raise UsageError(f"focus is {focus!r}; expected a share between 0 and 1")
    if not _is_number(right):
        raise UsageError(f"right is {right!r}; expected a number")
    for name in ELSEWHERE.keys() & options.keys():
        raise UsageError(f"{name} is not an option of a language evolution; {ELSEWHERE[name]}")


def texts_of(name: str, texts: Any) -> list[str]:
    """Texts as a list. A single string, a set, and empty or other values among them raise UsageError."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise UsageError(f"{name} is {texts!r}; expected a list of strings")
    if isinstance(texts, Set) and not isinstance(texts, MappingView):  # keys of a dictionary have an order
        raise UsageError(f"{name} is a set, whose order differs between processes; expected a list of strings")
    found = list(texts)
    for text in found:
        if not isinstance(text, str) or not text:
            raise UsageError(f"{name} holds {text!r}; expected text")
    return found


def _is_number(value: Any) -> bool:
    """Whether it is a number, also NumPy's."""
    return isinstance(value, Real) and not isinstance(value, bool)
