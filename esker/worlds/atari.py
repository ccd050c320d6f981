"""Atari: Gymnasium's preprocessing and frame stacking over ALE, with episodes that begin at once from their seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
from gymnasium.utils import seeding

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
    frame_stack: int = 4
    frame_skip: int = 4
    noop_max: int = 30
    sticky_actions: float = 0.0
    fire: bool = True
    max_frames: int = 108_000

    @property
    def max_steps(self) -> int:
        """The decisions of an episode, at most."""
        return self.max_frames // self.frame_skip

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
        if not self.fire:
            env = WithoutFire(env)
        if self.sticky_actions:
            env = gym.wrappers.StickyAction(env, self.sticky_actions)
        env = gym.wrappers.AtariPreprocessing(
            env, noop_max=self.noop_max, frame_skip=self.frame_skip, screen_size=self.screen_size
        )
        return gym.wrappers.FrameStackObservation(env, self.frame_stack)


class WithoutFire(gym.ActionWrapper[Any, Any, Any]):
    """Only the actions that do not press the fire button. A game that has fewer than two of them raises ValueError."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        game: Any = env.unwrapped
        self.kept = [number for number, meaning in enumerate(game.get_action_meanings()) if "FIRE" not in meaning]
        if len(self.kept) < 2:
            raise ValueError("without the fire button it has fewer than two actions; leave out --no-fire")
        self.action_space = gym.spaces.Discrete(len(self.kept))

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
