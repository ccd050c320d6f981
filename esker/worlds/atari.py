"""Atari: Gymnasium's preprocessing and frame stacking over ALE, with episodes that begin at once from their seed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding

from esker.errors import nearest

Env = gym.Env[Any, Any]
PREFIX = "ALE/"
STARTS = 8  # cloned start states per game; no-ops and sticky actions are drawn from each episode's own seed


def register_games() -> None:
    """Register ALE's games with Gymnasium, if ale-py is installed, and keep ALE from printing its banner."""
    try:
        import ale_py
    except ImportError:
        return
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gym.register_envs(ale_py)


def sees_memory(*layers: Mapping[str, Any]) -> bool:
    """Whether a game's memory is observed, by the first layer of options that has arguments of the environment."""
    names = ("env_kwargs", "env_config")  # RLlib's name
    kwargs = next((layer[name] for layer in layers for name in names if layer.get(name)), None)
    if isinstance(kwargs, str):
        try:
            kwargs = json.loads(kwargs)
        except ValueError:  # refused later
            return False
    return isinstance(kwargs, Mapping) and kwargs.get("obs_type") == "ram"


@dataclass(frozen=True)
class Atari:
    """How Atari frames become observations and decisions."""

    screen_size: int = 84
    screen_width: int | None = None  # None: a square
    frame_stack: int = 4
    frame_skip: int = 4
    crop: tuple[int, ...] = ()  # the first row of the screen that is seen, and the first below it; none: all
    noop_max: int = 30
    sticky_actions: float = 0.0
    fire: bool = True
    actions: tuple[str, ...] = ()  # by ALE's names; none: all
    max_frames: int = 108_000

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of what is seen."""
        return self.screen_width or self.screen_size, self.screen_size

    def max_steps(self, kwargs: Mapping[str, Any]) -> int:
        """The decisions of an episode, at most, with these arguments of the environment."""
        frames = kwargs.get("max_num_frames_per_episode") or self.max_frames
        return -(-frames // self.frame_skip)

    @property
    def arguments(self) -> dict[str, Any]:
        """What `gym.make` is given: one frame a step, since the preprocessing skips, and no stickiness of ALE's own."""
        return {
            "frameskip": 1,
            "repeat_action_probability": 0.0,
            "max_num_frames_per_episode": self.max_frames,
            "obs_type": "grayscale",
        }

    def wrap(self, env: Env) -> Env:
        """Starts, stickiness, preprocessing and stacking over a bare ALE environment."""
        env = StartPool(env.unwrapped, self.max_frames)
        if self.sticky_actions:
            env = gym.wrappers.StickyAction(env, self.sticky_actions)
        env = Screen(env, self.crop, noop_max=self.noop_max, frame_skip=self.frame_skip, screen_size=self.size)
        env = gym.wrappers.FrameStackObservation(env, self.frame_stack)
        game: Any = env.unwrapped
        meanings = game.get_action_meanings()
        kept = self.chosen(meanings)
        return env if kept == list(range(len(meanings))) else ChosenActions(env, kept)

    def chosen(self, meanings: Sequence[str]) -> list[int]:
        """The game's numbers of the actions that a policy has. Names it lacks, or fewer than two, raise ValueError."""
        names = [name.upper() for name in self.actions]
        for name in names:
            if name not in meanings:
                raise ValueError(
                    f"it has no action {name!r}{nearest(name, meanings)}; its actions are {', '.join(meanings)}"
                )
            if not self.fire and "FIRE" in name:
                raise ValueError(f"{name} presses the fire button; leave out --no-fire")
        named = [meanings.index(name) for name in dict.fromkeys(names)] or list(range(len(meanings)))
        kept = [number for number in named if self.fire or "FIRE" not in meanings[number]]
        if len(kept) < 2 and not self.fire:
            raise ValueError("without the fire button it has fewer than two actions; leave out --no-fire")
        if len(kept) < 2:
            raise ValueError(f"a policy needs at least two actions; its actions are {', '.join(meanings)}")
        return kept


class Screen(gym.wrappers.AtariPreprocessing):
    """Gymnasium's preprocessing of all rows of the screen or of some. Rows that the screen lacks raise ValueError."""

    def __init__(self, env: Env, rows: tuple[int, ...], **options: Any) -> None:
        super().__init__(env, **options)
        height = self.obs_buffer[0].shape[0]
        if rows and (len(rows) != 2 or not 0 <= rows[0] < rows[1] <= height):
            raise ValueError(f"crop is {','.join(map(str, rows))}; expected two rows of {height}, as 34,194")
        self.rows = slice(*(rows or (None,)))
        self.observation_space = gym.spaces.Box(0, 255, self.screen_size[::-1], np.uint8)  # Gymnasium 1.0 swaps the sides

    def _get_obs(self) -> Any:
        whole = self.obs_buffer
        self.obs_buffer = [screen[self.rows] for screen in whole]  # views
        seen = super()._get_obs()  # type: ignore[no-untyped-call]
        self.obs_buffer = whole
        return seen


class ChosenActions(gym.ActionWrapper[Any, Any, Any]):
    """Some of a game's actions, by its numbers. What precedes an episode, which does nothing, stays as it is."""

    def __init__(self, env: Env, kept: list[int]) -> None:
        super().__init__(env)
        self.kept = kept
        self.action_space = gym.spaces.Discrete(len(kept))

    def action(self, action: Any) -> int:
        """The game's number of an action."""
        return self.kept[int(action)]


class StartPool(gym.Wrapper[Any, Any, Any, Any]):
    """Lets `reset(seed)` restore a cloned start state: exact, and a thousandth of the time of ALE's own seeded reset.

    ALE takes a seed only by loading the ROM again (170 ms). What a seed decides here is which of a few start states
    is restored, and everything that wrappers draw from `np_random`: no-ops, sticky actions.
    """

    pools: ClassVar[dict[tuple[Any, ...], dict[int, Any]]] = {}

    def __init__(self, env: Env, max_frames: int) -> None:
        super().__init__(env)
        game: Any = env
        settings = (game._game, game._game_mode, game._game_difficulty, max_frames)
        self.game = game
        self.pool = self.pools.setdefault(settings, {})
        # The preprocessing above reads the screen itself, of two frames in four; ALE's own copy of each frame goes unseen.
        unseen = game.observation_space.sample()
        game._get_obs = lambda: unseen

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; without a seed, one is drawn."""
        if seed is None:
            seed = int(self.game.np_random.integers(2**31))
        number = seed % STARTS
        if number not in self.pool:
            self.game.reset(seed=number)
            self.pool[number] = self.game.clone_state(include_rng=True)
        self.game.restore_state(self.pool[number])
        self.game._np_random, self.game._np_random_seed = seeding.np_random(seed)
        return self.game._get_obs(), self.game._get_info()
