"""Strategies: ask for candidates, tell their fitness. Each is one file that reads like its paper."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {  # imported when first used, since they need torch and a command line does not
    "AES": "esker.strategies.aes",
    "AsyncCEM": "esker.strategies.async_cem",
    "CEM": "esker.strategies.cem",
    "OnePlusOne": "esker.strategies.one_plus_one",
    "OpenAIES": "esker.strategies.openai_es",
}
__all__ = ["AES", "CEM", "AsyncCEM", "OnePlusOne", "OpenAIES"]

if TYPE_CHECKING:
    from esker.strategies.aes import AES
    from esker.strategies.async_cem import AsyncCEM
    from esker.strategies.cem import CEM
    from esker.strategies.one_plus_one import OnePlusOne
    from esker.strategies.openai_es import OpenAIES


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'esker.strategies' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
