"""Episodes without end: whether an environment has a time limit, and the one it gets where it has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium as gym

from esker.worlds.environments import Env, Environment

DEFAULT_LIMIT = 10_000


def time_limit(env: Env) -> int | None:
    """The number of steps after which an environment truncates episodes, if declared."""
    spec = env.spec
    if spec is not None and spec.max_episode_steps is not None:
        return spec.max_episode_steps
    inner: Any = env
    while isinstance(inner, gym.Wrapper):
        if isinstance(inner, gym.wrappers.TimeLimit):
            return int(inner._max_episode_steps)
        inner = inner.env
    return None


def limited(config: Any, environment: Environment, probe: Env) -> tuple[Any, Environment, list[str]]:
    """A configuration and environment whose episodes end; a notice where a limit had to be chosen.

    Atari's own limit of frames is a limit, too; an adaptive cap is none, since it does not bind the centre.
    """
    if config.max_episode_steps is not None or environment.is_atari or time_limit(probe) is not None:
        return config, environment, []
    text = f"{environment.name} has no time limit, so episodes end after {DEFAULT_LIMIT:,} steps"
    capped_environment = replace(environment, max_episode_steps=DEFAULT_LIMIT)
    return (
        replace(config, max_episode_steps=DEFAULT_LIMIT),
        capped_environment,
        [f"{text}; --max-episode-steps changes that"],
    )
