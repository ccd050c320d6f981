"""Strategies: which members to try next, and how their fitness moves the centre. Pure, one short file each."""

from esker.strategies.aes import AES
from esker.strategies.async_cem import AsyncCEM
from esker.strategies.cem import CEM
from esker.strategies.one_plus_one import OnePlusOne
from esker.strategies.openai_es import OpenAIES, Update

__all__ = ["AES", "CEM", "AsyncCEM", "OnePlusOne", "OpenAIES", "Update"]
