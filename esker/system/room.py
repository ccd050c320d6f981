"""What cannot fit this machine's memory is refused by an estimate, before anything is allocated."""

from __future__ import annotations

import os

from esker.errors import UsageError


def refuse_beyond_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse what needs more bytes than this machine has in all. Raises UsageError."""
    there = machine_memory()
    if there is not None and needed > there:
        raise UsageError(f"{what}: at least {needed / 1e9:,.0f} GB, and this machine has {there / 1e9:,.0f}; {remedy}")


def machine_memory() -> int | None:
    """The bytes of this machine's memory; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
