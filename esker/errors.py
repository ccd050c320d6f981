"""The two ways esker stops: the request was wrong, or the work failed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UsageError(ValueError):
    """The request was wrong; the message is one line that says what to do. Exit status 2."""


class RunError(RuntimeError):
    """The work failed under way; what was committed is safe. Exit status 1."""


class Damage(str):
    """A notice of something damaged, which is shown even when all else is quiet."""


def nearest(given: str, known: Iterable[str]) -> str:
    """A "; did you mean …?" ending for an unknown name, or nothing when no known name is close."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(given.lower(), by_lower, n=3, cutoff=0.6)
    if not close:
        return ""
    return "; did you mean " + " or ".join(repr(by_lower[name]) for name in close) + "?"


def first_line(error: BaseException) -> str:
    """An error in one line: the first of its text, or the name of its kind."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # a foreign exception's __str__ may raise anything
        lines = []
    return lines[0] if lines else type(error).__name__


def named_line(error: BaseException) -> str:
    """An error in one line that begins with the name of its kind."""
    name, line = type(error).__name__, first_line(error)
    return name if line == name else f"{name}: {line}"
