"""What the examples of this folder share: SmolLM2-135M-Instruct from the package index, its options, and one run."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch

from esker.language import LanguageEvolution, load, packaged

HELD_OUT = 512  # problems that the model is not trained on


def parse(description: str | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--population", type=int, default=2048)
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--generations", type=int, default=500)
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--run-dir", help="run folder, for `esker eval`")
    parser.add_argument("--save", help="folder for the evolved model")
    return parser.parse_args()


def chat(prompt: str) -> str:
    """The model's chat format without its system message."""
    return f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def evolve(
    problems: list[str], score: Callable[[str, str], float], max_new_tokens: int, options: argparse.Namespace
) -> None:
    """Evolve the model, then print its accuracy and some completions on the held-out problems."""
    held_out = problems[: HELD_OUT if options.device != "cpu" else 2]
    evolution = LanguageEvolution(
        load(packaged()),
        problems[HELD_OUT:],
        score,
        held_out=held_out,
        template=chat,
        max_new_tokens=max_new_tokens,
        population=options.population,
        prompts_per_generation=options.prompts,
        sigma=0.012,
        lr=8.64e-4 * (options.population / 2048) ** 0.5,  # the fewer members, the noisier their gradient
        lr_decay=0.995,
        balance=True,
        focus=0.5 if options.device != "cpu" else 0.0,  # completes 256 prompts more in each generation
        device=options.device,
        dtype="float32" if options.device == "cpu" else "bfloat16",
        wall_time=options.seconds,
        run_dir=options.run_dir,
        compile=options.device != "cpu",
    )
    evolution.run(options.generations)
    result = evolution.evaluate(held_out, examples=8)
    print(f"accuracy on held-out problems: {result.accuracy:.1%}")
    for prompt, completion, value in result.examples:
        print(f"  {prompt}  {completion!r}  {value:.2f}")
    if options.save:
        print("saved in", evolution.save(options.save))
