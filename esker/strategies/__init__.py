"""Strategies: which members to try next, and how their fitness moves the centre. Pure, one short file each."""

from esker.strategies.openai_es import OpenAIES, Update

__all__ = ["OpenAIES", "Update"]
