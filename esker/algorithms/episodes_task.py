"""From a configuration to the task of a policy: environment, network, action head, episodes."""

from __future__ import annotations

from typing import Any

from esker.algorithms.algorithm import About
from esker.config.options import SynchronousConfig
from esker.errors import UsageError
from esker.noise.shaping import SIGN_SHAPINGS
from esker.policies import spaces
from esker.policies.choose import network_for
from esker.policies.heads import BoxHead, head_for
from esker.policies.observations import shown
from esker.system.room import refuse_beyond_memory
from esker.tasks.episodes import Episodes
from esker.worlds.atari import Atari
from esker.worlds.environments import Environment
from esker.worlds.vectorizers import Vectorizer, exact_vectorizer

CACHE_BYTES = 2**20
LEAST_SLOTS = 6
SCREENS = {"linear": (42, 2), "conv-lstm": (42, 1)}  # of Atari: side and frames for small networks
MUJOCO_BYTES = 44_000  # of a simulator and its Python objects that a step of a Gymnasium MuJoCo world touches, about


def build_task(config: SynchronousConfig, environment: Environment, about: About) -> Episodes:
    """The task of a configuration, for the spaces that `about` describes. What does not fit raises UsageError."""
    actions = spaces.described(about, "action_space")
    head = head_for(actions, config.action_mode, config.bins)
    if config.action_noise and not isinstance(head, BoxHead):
        text = f"action_noise is {config.action_noise}; it is for continuous (Box) actions"
        raise UsageError(f"{text}, and this environment has {shown(actions)}")
    observations = spaces.described(about, "observation_space")
    network = network_for(config, observations, head.outputs)
    slots = config.slots or default_slots(network.dimension, MUJOCO_BYTES if environment.is_plain_mujoco else 0)
    _refuse_too_large(network.dimension, config.slots, shared=config.noise == "low-rank")
    return Episodes(
        environment=environment,
        network=network,
        head=head,
        seed=config.seed,
        episodes_per_member=config.episodes_per_member,
        center_episodes=config.center_episodes,
        common_seeds=config.common_seeds,
        normalize=config.normalize_observations and len(network.input_shape) == 1,
        action_noise=config.action_noise,
        sign_fitness=getattr(config, "shaping", None) in SIGN_SHAPINGS,
        survival_bonus=config.survival_bonus or 0.0,
        fresh_environments=config.fresh_environments,
        rank=config.rank if config.noise == "low-rank" else None,
        slots=slots,
        vectorizer=_vectorizer(config, environment),
    )


def _refuse_too_large(dimension: int, slots: int | None, shared: bool) -> None:
    """Refuse a policy, or slots each with its parameters, that cannot fit this machine. Raises UsageError.

    There are at least the centre and an optimizer's two moments, and, unless slots share the centre's parameters, theirs.
    """
    what = f"the policy for these spaces would have {dimension:,} parameters"
    rows = 3 if shared else 3 + min(slots or LEAST_SLOTS, LEAST_SLOTS)
    refuse_beyond_memory(4 * dimension * rows, what, "use fewer --hidden, or wrap the environment")
    if slots is not None:
        refuse_beyond_memory(4 * dimension * slots, f"slots is {slots:,}, and {what}", "use fewer --slots")


def _vectorizer(config: SynchronousConfig, environment: Environment) -> Vectorizer:
    if config.vectorizer is None or config.vectorizer == "auto":
        return exact_vectorizer(environment, config.fresh_environments)
    return config.vectorizer


def default_slots(dimension: int, simulator: int = 0) -> int:
    """As many rows as keep their parameters and simulators in about a megabyte of cache; only speed depends on it."""
    return max(LEAST_SLOTS, min(64, CACHE_BYTES // (4 * dimension + simulator)))


def environment_options(config: SynchronousConfig) -> dict[str, Any]:
    """How a configuration makes its environment."""
    screen_size, frame_stack = SCREENS.get(config.network, (84, 4))
    atari = Atari(
        screen_size=config.screen_size or screen_size,
        screen_width=config.screen_width,
        frame_stack=config.frame_stack or frame_stack,
        frame_skip=config.frame_skip,
        crop=config.crop,
        noop_max=config.noop_max,
        sticky_actions=config.sticky_actions,
        fire=config.fire,
        actions=config.actions,
        max_frames=config.max_frames,
    )
    return {
        "kwargs": dict(config.env_kwargs),
        "wrappers": config.wrapper,
        "max_episode_steps": config.max_episode_steps,
        "time_aware": config.time_aware,
        "atari": atari,
        "flat": config.network == "linear",
    }
