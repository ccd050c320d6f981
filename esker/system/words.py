"""Words beside numbers."""

from __future__ import annotations


def count(amount: int, noun: str) -> str:
    """`1 run`, `1,200 runs`."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"
