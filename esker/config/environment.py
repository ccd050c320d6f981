"""Options of the environment: what it is made with, how its episodes end, who steps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from esker.config.option import option
from esker.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class CapGrowth:
    """The rule of `adaptive_cap threshold`: the cap grows by `factor` once a share `threshold` of episodes reaches it."""

    initial: int = option(100, "first cap, in steps", low=1)
    threshold: float = option(0.5, "share of episodes that must reach the cap", above=0, high=1)
    factor: float = option(1.5, "growth of the cap", above=1)


@dataclass(frozen=True, kw_only=True)
class EnvironmentOptions:
    """Environment"""

    env_kwargs: dict[str, Any] = option({}, "arguments of the environment")
    wrapper: tuple[str, ...] = option((), "module:callable that wraps it; repeatable, in order", repeatable=True)
    max_episode_steps: int | None = option(None, "end episodes after N steps (default: as registered)", low=1)
    adaptive_cap: Literal["threshold", "twice-mean"] | None = option(
        None, "cap members' episodes: threshold, a cap that grows by cap_growth; twice-mean, 2 × the last mean length"
    )
    cap_growth: CapGrowth = option(
        CapGrowth(), "adaptive cap threshold: its rule as a JSON object of initial, threshold and factor"
    )
    vectorizer: Literal["gymnasium", "native", "envpool", "auto"] | None = option(
        None,
        "what steps the environments: Gymnasium, esker's native formulas (the same bits, faster), EnvPool (inexact), "
        "or auto: native, else EnvPool (default: native if it covers the environment, else gymnasium)",
    )
    time_aware: bool = option(False, "add the elapsed share of the episode to the observation")
    survival_bonus: float | None = option(
        None, "reward per step for staying alive: counted in returns, not in fitness (ARS)"
    )
    fresh_environments: bool = option(
        False, "make a new environment for every episode, if reset alone does not reproduce it"
    )
    on_error: Literal["stop", "worst"] = option("stop", "a member whose environment fails: stop the run, or rank it last")

    def check_cap(self) -> None:
        """Refuse a rule of growth for a cap that does not follow it. Raises UsageError."""
        if self.adaptive_cap != "threshold" and self.cap_growth != CapGrowth():
            raise UsageError("cap_growth is for --adaptive-cap threshold; add that, or leave it out")


@dataclass(frozen=True, kw_only=True)
class AtariOptions:
    """Atari"""

    frame_skip: int = option(4, "frames that each action lasts", low=1)
    frame_stack: int | None = option(None, "frames an observation shows (default: 4; linear: 2; conv-lstm: 1)", low=1)
    screen_size: int | None = option(
        None, "side of the scaled screen in pixels (default: 84; linear, conv-lstm: 42)", low=8, high=1024
    )
    screen_width: int | None = option(None, "width of the scaled screen in pixels, if it is no square", low=2, high=1024)
    crop: tuple[int, ...] = option((), "see only these rows of the screen, FIRST,END, scaled (Pong's court: 34,194)", low=0)
    noop_max: int = option(30, "start an episode with 1 to N frames of doing nothing", low=0)
    sticky_actions: float = option(0.0, "probability that a frame repeats the last frame's action", low=0, high=0.99)
    fire: bool = option(True, "actions that press the fire button, too")
    actions: tuple[str, ...] = option((), "the actions that a policy has, by ALE's names, as RIGHT,LEFT (default: all)")
    max_frames: int = option(108_000, "end an episode after N frames", low=1)
