"""EnvPool as worlds: one call for all of a worker's rows, in C++.

EnvPool takes no seed for an episode, so what a member is measured on depends on what ran before it: such runs are
inexact. Everything else is as with Gymnasium. Rows are stepped and reset by the number of their environment, so none
runs past its end and EnvPool's own restarts never happen: a row that ended is reset before its next step.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np

from esker.errors import UsageError, first_line, nearest
from esker.noise.address import Purpose, episode_seed
from esker.worlds.atari import PREFIX, Atari
from esker.worlds.environments import Env, Environment
from esker.worlds.worlds import Ended


class EnvPoolWorlds:
    """The environments of one worker, in one pool."""

    limit: int | None = None  # the pool itself truncates

    def __init__(self, environment: Environment, rows: int, seed: int) -> None:
        # Every worker needs other episodes; no seed could make them repeat.
        self.pool = make_pool(environment, rows, episode_seed(seed, Purpose.EPISODE, os.getpid()))
        self.numbers = np.arange(rows, dtype=np.int32)
        self.kind = np.float32 if hasattr(self.pool.action_space, "low") else np.int32

    def reset(self, row: int, seed: int) -> Any:
        """Begin an episode in a row; its seed is not used, since EnvPool takes none."""
        return self.pool.reset(self.numbers[row : row + 1])[0][0]

    def step(self, actions: Any, count: int, observations: Any) -> tuple[list[float], list[Ended]]:
        """Step all rows with one call."""
        seen, rewards, terminated, truncated, _ = self.pool.step(np.asarray(actions, dtype=self.kind), self.numbers[:count])
        observations[:count] = seen
        return rewards.tolist(), [Ended(row) for row in np.flatnonzero(terminated | truncated).tolist()]

    def swap(self, row: int, other: int) -> None:
        """Let the environments of two rows change places."""
        self.numbers[[row, other]] = self.numbers[[other, row]]

    def close(self) -> None:
        """Close the pool."""
        self.pool.close()


def pool_name(environment: Environment) -> str:
    """EnvPool's id for an environment. What EnvPool cannot do raises UsageError."""
    try:
        import envpool
    except ImportError as error:
        raise UsageError("vectorizer envpool needs EnvPool; pip install 'esker[envpool]'") from error
    if environment.factory is not None or ":" in environment.name:
        raise UsageError(f"vectorizer envpool does not run your own environments ({environment.name}); use gymnasium")
    atari = environment.atari or Atari()
    unsupported = {
        "wrapper": environment.wrappers,
        "time_aware": environment.time_aware,
        "--crop": atari.crop,
        "--actions": atari.actions,
        "--no-fire": not atari.fire,
    }
    for name, given in unsupported.items():
        if given:
            raise UsageError(f"vectorizer envpool does not support {name}; use --vectorizer gymnasium")
    name, known = environment.name.removeprefix(PREFIX), envpool.list_all_envs()
    if name not in known:
        raise UsageError(f"EnvPool has no environment {name!r}{nearest(name, known)}; use --vectorizer gymnasium")
    return name


def make_pool(environment: Environment, count: int, seed: int) -> Any:
    """A pool of environments on one thread. What EnvPool does not know or take raises UsageError."""
    name, options = pool_name(environment), dict(environment.kwargs)
    import envpool

    if environment.max_episode_steps is not None:
        options["max_episode_steps"] = environment.max_episode_steps
    if environment.is_atari and environment.atari is not None:
        atari = environment.atari
        options |= {
            "img_height": atari.size[1],
            "img_width": atari.size[0],
            "stack_num": atari.frame_stack,
            "frame_skip": atari.frame_skip,
            "noop_max": atari.noop_max,
            "use_fire_reset": False,
            "repeat_action_probability": atari.sticky_actions,
            "max_episode_steps": environment.max_episode_steps or -(-atari.max_frames // atari.frame_skip),
        }
    try:
        with warnings.catch_warnings():  # Gymnasium's notices about the precision of EnvPool's bounds
            warnings.simplefilter("ignore")
            pool = envpool.make(name, env_type="gymnasium", num_envs=count, num_threads=1, seed=seed, **options)
            pool.observation_space, pool.action_space  # noqa: B018 - made when first looked at
            return pool
    except (TypeError, AssertionError, ValueError) as error:
        raise UsageError(f"EnvPool does not take {options} for {name}: {first_line(error)}") from error


def check_pool(environment: Environment, probe: Env) -> None:
    """Refuse a pool whose observations or actions are not those of the Gymnasium environment."""
    pool = make_pool(environment, 1, 0)
    theirs = pool.observation_space.shape, type(pool.action_space).__name__, pool.action_space.shape
    ours = probe.observation_space.shape, type(probe.action_space).__name__, probe.action_space.shape
    pool.close()
    if theirs != ours:
        raise UsageError(f"EnvPool's {environment.name} is another environment: {theirs}, Gymnasium's {ours}; use gymnasium")
