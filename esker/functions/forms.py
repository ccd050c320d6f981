"""The three forms of a reward, one member at a time, batched, or by a server's workers; and which options fit which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esker.errors import RunError, UsageError
from esker.functions.reward import Function

SERVED_ELSEWHERE = ("workers", "executor", "timeout", "engine", "address")  # of no use to a server's workers
# Options that do not apply to a batched reward.
ONE_BY_ONE = ("workers", "executor", "timeout", "common_seeds", "engine", "address")
NOT_HERE = {"generations": "pass the number to run(iterations)", "env": "give the reward", "algo": "choose with strategy="}


def check_form(reward: Function | None, reward_batch: Function | None, options: Mapping[str, Any], tests: bool) -> None:
    """Refuse options that do not apply to the form of the reward. Raises UsageError."""
    if (reward is None) == (reward_batch is None):
        raise UsageError("expected either reward or reward_batch: reward(model) -> number, or reward_batch(members)")
    for name in NOT_HERE.keys() & options.keys():
        raise UsageError(f"{name} is not an option here; {NOT_HERE[name]}")
    if reward_batch is None and options.get("members_per_batch") is not None:
        raise UsageError("members_per_batch is for reward_batch; reward(model) is given one member at a time")
    if reward_batch is None and options.get("noise") == "low-rank":
        raise UsageError("noise='low-rank' evaluates many members at once; give reward_batch(members) instead of reward")
    if reward_batch is not None and (options.get("noise"), options.get("engine")) != ("low-rank", "ray"):
        for name in [*(name for name in ONE_BY_ONE if name in options), *(["test_kwargs"] if tests else [])]:
            raise UsageError(f"{name} is for reward(model); reward_batch is called in this process, in batches")


def by_workers(model: Any) -> float:
    """Placeholder for a reward that only the workers of a server know."""
    raise RunError("members of this run are evaluated by the workers of its server")


def check_served(reward: Any, reward_batch: Any, options: Mapping[str, Any], tests: bool) -> dict[str, Any]:
    """The options of a run whose members the workers of a server evaluate. What does not fit raises UsageError."""
    given = [name for name, value in (("reward", reward), ("reward_batch", reward_batch)) if value is not None]
    given += [*(["test_kwargs"] if tests else []), *(name for name in SERVED_ELSEWHERE if name in options)]
    if given:
        raise UsageError(f"{given[0]} has no effect with server, whose workers choose how to evaluate; leave it out")
    if options.get("noise", "counter") != "counter":
        raise UsageError(f"noise is {options['noise']!r}, and workers compute their members; use noise='counter'")
    return {**options, "noise": "counter"}
