"""Tasks for the language benchmark: prompts, held-out prompts and a score each. Nothing is downloaded."""

from __future__ import annotations

import importlib
import inspect
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

HELD_OUT = 512
BEGINNING = '{"answer":"'  # of what json_score wants, without spaces
PLACES = [
    "France",
    "Italy",
    "Spain",
    "Japan",
    "China",
    "India",
    "Brazil",
    "Canada",
    "Egypt",
    "Kenya",
    "Norway",
    "Sweden",
    "Finland",
    "Denmark",
    "Poland",
    "Greece",
    "Turkey",
    "Russia",
    "Mexico",
    "Peru",
    "Chile",
    "Cuba",
    "Iran",
    "Iraq",
    "Nepal",
    "Thailand",
    "Vietnam",
    "Germany",
    "Austria",
    "Portugal",
    "Ireland",
    "Belgium",
    "Hungary",
    "Romania",
    "Ukraine",
    "Morocco",
    "Nigeria",
    "Ghana",
    "Ethiopia",
    "Australia",
]
THINGS = [
    "apple",
    "river",
    "dog",
    "cat",
    "horse",
    "mountain",
    "ocean",
    "bread",
    "cheese",
    "violin",
    "piano",
    "computer",
    "bicycle",
    "train",
    "airplane",
    "garden",
    "forest",
    "desert",
    "island",
    "castle",
    "bridge",
    "clock",
    "lamp",
    "book",
    "pencil",
    "rain",
    "snow",
    "wind",
    "fire",
    "moon",
    "sun",
    "star",
    "planet",
    "fish",
    "bird",
    "whale",
    "tiger",
    "lion",
    "bear",
    "wolf",
]


@dataclass(frozen=True)
class Task:
    """What is to be learnt."""

    name: str
    train: list[str]
    validation: list[str]  # for curves and early stops
    held_out: list[str]  # judged once, at the end of a run
    score: Callable[[str, str], float]
    max_new_tokens: int
    template: Callable[[str], str]


def chat_turn(prompt: str) -> str:
    """SmolLM2's chat format without its system message: a short prompt is a fast one."""
    return f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"


def make(name: str) -> Task:
    """A task by name."""
    if name in ("addition", "addition3"):
        return _addition(name, *((10, 99) if name == "addition" else (100, 999)))
    return {"countdown": _countdown, "json": _json}[name]()


def _addition(name: str, low: int, high: int) -> Task:
    rng = random.Random(12345)
    wanted = min(20_000, (high - low + 1) ** 2)
    pairs: dict[tuple[int, int], None] = {}
    while len(pairs) < wanted * 0.8:
        pairs[rng.randint(low, high), rng.randint(low, high)] = None
    prompts = [f"What is {a} + {b}?" for a, b in pairs]
    return _task(name, prompts, HELD_OUT, addition_score, len(str(2 * high)) + 2)


def _task(name: str, prompts: list[str], count: int, score: Callable[[str, str], float], new_tokens: int) -> Task:
    """The first prompts are held out, those after them are for validation, the others are trained on."""
    return Task(name, prompts[2 * count :], prompts[count : 2 * count], prompts[:count], score, new_tokens, chat_turn)


def addition_score(prompt: str, completion: str) -> float:
    """1 for the number alone; part of it for a number of the right length, by its right digits."""
    answer, text = str(sum(map(int, re.findall(r"\d+", prompt)))), completion.strip()
    if text == answer:
        return 1.0
    if not re.fullmatch(r"\d+", text):
        return 0.02 * (len(re.findall(r"\d", text)) / max(1, len(text)))
    if len(text) != len(answer):
        return 0.1
    return 0.2 + 0.5 * sum(x == y for x, y in zip(text, answer, strict=True)) / len(answer)


def _countdown() -> Task:
    rng, prompts = random.Random(12345), {}
    while len(prompts) < 6000:
        a, b, c = (rng.randint(1, 20) for _ in range(3))
        first, second = rng.choice("+-*"), rng.choice("+-")
        target = eval(f"{a}{first}{b}{second}{c}")  # digits and operators made here
        if 0 < target < 100:
            numbers = sorted([a, b, c])
            prompts[f"{numbers[0]} {numbers[1]} {numbers[2]} -> {target}"] = None
    return _task("countdown", list(prompts), HELD_OUT, countdown_score, 14)


def countdown_score(prompt: str, completion: str) -> float:
    """1 for an expression of + - * that uses each number once and makes the target."""
    left, target = prompt.split(" -> ")
    text = completion.strip().replace(" ", "")
    if not re.fullmatch(r"\d+([+\-*]\d+)*", text):
        return 0.02 * (len(re.findall(r"[\d+\-*]", text)) / max(1, len(text)))
    used = sorted(int(part) for part in re.findall(r"\d+", text))
    if used != sorted(int(part) for part in left.split()):
        right = sum(number in used for number in map(int, left.split()))
        return 0.1 + 0.1 * right / 3 - 0.02 * min(5, abs(len(used) - 3))
    value = eval(text)  # digits and operators only, as matched above
    return 1.0 if value == int(target) else 0.4 + 0.2 / (1 + abs(value - int(target)) / 5)


def _json() -> Task:
    asks = ["What is the capital of {}?", "Name a river in {}.", "What language is spoken in {}?", "Is {} large?"]
    tells = ["What is a {}?", "What colour is a {}?", "Name a use of a {}.", "Where is a {} found?"]
    prompts = [ask.format(place) for ask in asks for place in PLACES] + [
        ask.format(thing) for ask in tells for thing in THINGS
    ]
    random.Random(12345).shuffle(prompts)
    return _task("json", [f"{prompt} Reply in JSON with the key answer." for prompt in prompts], 64, json_score, 16)


def json_score(prompt: str, completion: str) -> float:
    """1 for a JSON object with the one key "answer", text in it and nothing else; parts for how it begins and ends."""
    text = completion.strip()
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if (
        isinstance(value, dict)
        and list(value) == ["answer"]
        and isinstance(value["answer"], str)
        and value["answer"].strip()
    ):
        return 1.0
    dense = re.sub(r"\s", "", text)
    brace = dense.find("{")
    if brace < 0:
        return 0.0
    begun = max(n for n in range(len(BEGINNING) + 1) if dense[brace:].startswith(BEGINNING[:n])) / len(BEGINNING)
    return 0.1 + 0.1 * (brace == 0) + 0.4 * begun + 0.2 * dense.endswith('"}')


def plain_text(modules: int = 12) -> list[str]:
    """English that the tasks have nothing to do with: documentation of the standard library."""
    names = [
        "argparse",
        "asyncio",
        "collections",
        "contextlib",
        "csv",
        "datetime",
        "decimal",
        "difflib",
        "email",
        "functools",
        "heapq",
        "http",
        "logging",
    ]
    texts = []
    for name in names[:modules]:
        module = importlib.import_module(name)
        parts = [inspect.getdoc(module) or ""] + [
            inspect.getdoc(part) or "" for part in vars(module).values() if callable(part)
        ]
        texts.append("\n\n".join(part for part in parts if len(part) > 80)[:4000])
    return [text for text in texts if len(text) > 200]
