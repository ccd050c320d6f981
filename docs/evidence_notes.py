"""The tables of docs/evidence/notes.md about single runs of the algorithms with gradients, read from stored curves."""

from __future__ import annotations

import statistics
from typing import Any

from evidence_text import load, million, number, table


def late(curve: dict[str, list[float]], key: str, steps: int) -> float:
    """The mean of the last three rows up to some steps."""
    count = sum(value <= steps for value in curve[key])
    return statistics.fmean(curve["center_return"][max(0, count - 3) : count])


def at(curve: dict[str, list[float]], steps: int) -> float:
    """The centre's return in the last row up to some training steps."""
    return curve["center_return"][sum(value <= steps for value in curve["training_steps"]) - 1]


def seeds(values: Any) -> str:
    """One number for each seed."""
    return " · ".join(map(number, values))


def early() -> str:
    """The centre on HalfCheetah after 0.3M training steps."""
    rows = []
    for name in ("aes-rl", "cem-rl", "td3"):
        data = load(f"halfcheetah-{name}")
        rows.append([f"`{data['preset']}`", seeds(late(seed["curve"], "training_steps", 300_000) for seed in data["seeds"])])
    return table(["preset", "centre after 0.30M training steps, mean of three stored points, by seed"], rows)


def slow_gaits() -> str:
    """Attempts on HalfCheetah of which a seed stayed with a slow gait."""
    lost, first = load("halfcheetah-aes-rl")["earlier"][-1], load("halfcheetah-one-plus-one")["earlier"][0]
    rows = []
    for name, runs in (
        ("aes-rl, five episodes of the mean", lost["seeds"]),
        ("one-plus-one, first attempt", first["seeds"]),
    ):
        rows.append(
            [name, million(max(one["training_steps"] for one in runs)), seeds(one["best_center_return"] for one in runs)]
        )
    return table(["attempt", "training steps", "best centre by seed"], rows)


def one_plus_one() -> str:
    """Two runs of (1+1)-ES with one seed."""
    data = load("halfcheetah-one-plus-one")
    first, again = (runs["seeds"][1] for runs in (data["earlier"][0], data))
    rows = []
    for steps in (65_000, 85_000, 96_000, 155_000, 194_000, 245_000, first["training_steps"]):
        rows.append([f"{steps:,}", *(number(at(run["curve"], steps)) for run in (first, again))])
    rows.append(["evaluation of the best", *(number(run["evaluation"]["mean"]) for run in (first, again))])
    return table(["training steps", "first attempt", "repeated"], rows)


def swimmer_early() -> str:
    """AES-RL's centre on Swimmer, from the first row after random play."""
    runs = load("swimmer-aes-rl")["seeds"]
    rows = [
        [f"{steps:,}", *(number(at(run["curve"], steps)) for run in runs)]
        for steps in (30_000, 60_000, 90_000, 120_000, 150_000, 200_000)
    ]
    return table(["training steps", *(f"seed {run['seed']}" for run in runs)], rows)


def swimmer_cem() -> str:
    """CEM-RL on Swimmer with one trained individual from the start, and with the preset."""
    data = load("swimmer-cem-rl")
    other = data["earlier"][0]
    begun = seeds(at(run["curve"], 400_000) for run in data["seeds"])
    rows = [
        ["the preset: centre when gradients begin, at 0.40M training steps", begun, f"`{data['command']}`"],
        ["the same at the end, evaluated", seeds(run["evaluation"]["mean"] for run in data["seeds"]), "the same"],
        [
            f"{other['note']}, evaluated after {million(max(run['training_steps'] for run in other['seeds']))}",
            seeds(run["evaluation"]["mean"] for run in other["seeds"]),
            f"`{other['command']}`",
        ],
    ]
    return table(["what", "by seed", "command"], rows)
