"""Strategies: ask for candidates, tell their fitness. Each is one file that reads like its paper."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {  # imported when first used, since they need torch and a command line does not
    "AES": "esker.strategies.aes",
    "AsyncCEM": "esker.strategies.async_cem",
    "CEM": "esker.strategies.cem",
    "CMA": "esker.strategies.cma",
    "ClipUp": "esker.strategies.clipup",
    "OnePlusOne": "esker.strategies.one_plus_one",
    "OpenAIES": "esker.strategies.openai_es",
    "PGPE": "esker.strategies.pgpe",
    "Restarts": "esker.strategies.restarts",
    "SNES": "esker.strategies.snes",
    "SepCMA": "esker.strategies.sep_cma",
    "Strategy": "esker.strategies.strategy",
}
__all__ = [
    "AES",
    "CEM",
    "CMA",
    "PGPE",
    "SNES",
    "AsyncCEM",
    "ClipUp",
    "OnePlusOne",
    "OpenAIES",
    "Restarts",
    "SepCMA",
    "Strategy",
]

if TYPE_CHECKING:
    from esker.strategies.aes import AES
    from esker.strategies.async_cem import AsyncCEM
    from esker.strategies.cem import CEM
    from esker.strategies.clipup import ClipUp
    from esker.strategies.cma import CMA
    from esker.strategies.one_plus_one import OnePlusOne
    from esker.strategies.openai_es import OpenAIES
    from esker.strategies.pgpe import PGPE
    from esker.strategies.restarts import Restarts
    from esker.strategies.sep_cma import SepCMA
    from esker.strategies.snes import SNES
    from esker.strategies.strategy import Strategy


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'esker.strategies' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
