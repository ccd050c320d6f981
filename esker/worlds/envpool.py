"""Slots whose environments are stepped by EnvPool: one call for all of a worker's rows, in C++.

EnvPool takes no seed for an episode, so what a member is measured on depends on what ran before it: such runs are
inexact. Everything else is as with Gymnasium. Rows are stepped and reset by the number of their environment, so none
runs past its end and EnvPool's own restarts never happen: a row that ended is reset before its next step.
"""

from __future__ import annotations

import os
import traceback
import warnings
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from esker.errors import UsageError, nearest
from esker.noise.address import Purpose, episode_seed
from esker.noise.directions import Noise
from esker.tasks.episodes import Ended, Episodes, Slots
from esker.tasks.task import Board
from esker.worlds.atari import PREFIX
from esker.worlds.environments import Env, Environment

C = TypeVar("C", bound=Any)


class PooledSlots(Slots):
    """The slots of one worker, over one pool."""

    def __init__(self, task: Episodes, noise: Noise, board: Board) -> None:
        super().__init__(task, noise, board)
        # Every worker needs other episodes; no seed could make them repeat.
        seed = episode_seed(task.seed, Purpose.EPISODE, os.getpid())
        self.pool = make_pool(task.environment, task.slots, seed)
        self.numbers = np.arange(task.slots, dtype=np.int32)
        self.discrete = not hasattr(self.pool.action_space, "low")

    def _step(self, busy: int) -> list[Ended]:
        actions = np.asarray(self._act(busy), dtype=np.int32 if self.discrete else np.float32)
        self.tick += 1
        self.board[0], self.board[1] = self.tick, self.items[0]
        try:
            observations, rewards, terminated, truncated, _ = self.pool.step(actions, self.numbers[:busy])
        except Exception as error:  # one call steps them all, so one failure is everyone's
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            return [(row, text, traceback.format_exc()) for row in range(busy)]
        self.observations[:busy] = observations
        for row, reward in enumerate(rewards.tolist()):
            self.totals[row] += reward
            if self.task.sign_fitness:
                self.signs[row] += (reward > self.task.survival_bonus) - (reward < self.task.survival_bonus)
        done = np.flatnonzero(terminated | truncated).tolist()
        return self._capped(busy, [(row, None, "") for row in done])

    def _reset(self, row: int, seed: int) -> Any:
        return self.pool.reset(self.numbers[row : row + 1])[0][0]

    def _swap(self, row: int, last: int) -> None:
        self.numbers[[row, last]] = self.numbers[[last, row]]

    def close(self) -> None:
        self.pool.close()


def choose_vectorizer(config: C, environment: Environment, probe: Env) -> tuple[C, list[str]]:
    """Settle `auto`, and refuse a pool that does not fit; EnvPool is never chosen without a notice."""
    chosen = config.vectorizer
    if chosen == "auto":
        try:
            chosen = "gymnasium" if config.fresh_environments else _fits(environment, probe)
        except UsageError:
            chosen = "gymnasium"
    elif chosen == "envpool":
        _fits(environment, probe)
    if chosen == "gymnasium":
        return replace(config, vectorizer=chosen), []
    text = "EnvPool steps the environments; it takes no seed for an episode, so this run is inexact: it will not repeat"
    return replace(config, vectorizer=chosen), [text]


def _fits(environment: Environment, probe: Env) -> str:
    check_pool(environment, probe)
    return "envpool"


def pool_name(environment: Environment) -> str:
    """EnvPool's id for an environment. What EnvPool cannot do raises UsageError."""
    try:
        import envpool
    except ImportError as error:
        raise UsageError("vectorizer envpool needs EnvPool; pip install 'esker[envpool]'") from error
    if environment.factory is not None or ":" in environment.name:
        raise UsageError(f"vectorizer envpool knows no environments of your own ({environment.name}); use gymnasium")
    for name, given in (("wrapper", environment.wrappers), ("time_aware", environment.time_aware)):
        if given:
            raise UsageError(f"vectorizer envpool takes no {name}; use --vectorizer gymnasium")
    name, known = environment.name.removeprefix(PREFIX), envpool.list_all_envs()
    if name not in known:
        raise UsageError(f"EnvPool knows no {name!r}{nearest(name, known)}; use --vectorizer gymnasium")
    return name


def make_pool(environment: Environment, count: int, seed: int) -> Any:
    """A pool of so many environments on one thread. What EnvPool does not know or take raises UsageError."""
    name, options = pool_name(environment), dict(environment.kwargs)
    import envpool

    if environment.max_episode_steps is not None:
        options["max_episode_steps"] = environment.max_episode_steps
    if environment.is_atari and environment.atari is not None:
        atari = environment.atari
        options |= {
            "img_height": atari.screen_size,
            "img_width": atari.screen_size,
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
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UsageError(f"EnvPool does not take {options} for {name}: {text}") from error


def check_pool(environment: Environment, probe: Env) -> None:
    """Refuse a pool whose observations or actions are not those of the Gymnasium environment."""
    pool = make_pool(environment, 1, 0)
    theirs = pool.observation_space.shape, type(pool.action_space).__name__, pool.action_space.shape
    ours = probe.observation_space.shape, type(probe.action_space).__name__, probe.action_space.shape
    pool.close()
    if theirs != ours:
        raise UsageError(f"EnvPool's {environment.name} is another environment: {theirs}, Gymnasium's {ours}; use gymnasium")
