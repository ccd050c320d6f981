"""From a configuration to the parts of a run: task, state, engine, and what the machine is like."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from esker.algorithms import hybrid_parts
from esker.algorithms.es import EvolutionStrategy
from esker.config.options import ESConfig
from esker.engines.engine import Engine, InlineEngine
from esker.engines.local import LocalEngine
from esker.errors import UsageError
from esker.noise.address import Purpose, generator
from esker.noise.fingerprint import fingerprint
from esker.noise.shaping import SIGN_SHAPINGS
from esker.noise.table import NoiseTable
from esker.policies import spaces
from esker.policies.choose import network_for
from esker.policies.heads import BoxHead, head_for
from esker.policies.observations import is_image
from esker.runs.folder import RunFolder
from esker.tasks.episodes import Episodes
from esker.worlds.atari import Atari
from esker.worlds.environments import Env, Environment
from esker.worlds.vectorizers import Vectorizer, exact_vectorizer

if TYPE_CHECKING:
    from esker.engines.ray import RayEngine

CACHE_BYTES = 2**20
MUJOCO_BYTES = 44_000  # of a simulator and its Python objects that a step of a Gymnasium MuJoCo world touches, about


def build_task(config: Any, environment: Environment, about: dict[str, Any]) -> Episodes:
    """The task of a configuration, for the spaces that `about` describes. What does not fit raises UsageError."""
    if not isinstance(config, ESConfig):
        return hybrid_parts.acting_task(config, environment, about)
    actions = spaces.from_json(about["action_space"])
    head = head_for(actions, config.action_mode, config.bins)
    if config.action_noise and not isinstance(head, BoxHead):
        raise UsageError(
            f"action_noise is {config.action_noise}; it is for continuous (Box) actions, and this environment has {actions}"
        )
    observations = spaces.from_json(about["observation_space"])
    network = network_for(config, observations, head.outputs)
    return Episodes(
        environment=environment,
        network=network,
        head=head,
        seed=config.seed,
        antithetic=config.antithetic,
        episodes_per_member=config.episodes_per_member,
        center_episodes=config.center_episodes,
        common_seeds=config.common_seeds,
        normalize=config.normalize_observations and not is_image(observations),
        statistics_share=min(1.0, config.statistics_episodes / (config.population * config.episodes_per_member)),
        action_noise=config.action_noise,
        sign_fitness=config.shaping in SIGN_SHAPINGS,
        reward_scale=config.reward_scale,
        survival_bonus=config.survival_bonus or 0.0,
        fresh_environments=config.fresh_environments,
        rank=config.rank if config.noise == "low-rank" else None,
        slots=config.slots or default_slots(network.dimension, MUJOCO_BYTES if environment.is_plain_mujoco else 0),
        vectorizer=_vectorizer(config, environment),
    )


def _vectorizer(config: ESConfig, environment: Environment) -> Vectorizer:
    if config.vectorizer is None or config.vectorizer == "auto":
        return exact_vectorizer(environment, config.fresh_environments)
    return config.vectorizer


def environment_options(config: Any) -> dict[str, Any]:
    """What a configuration says about how its environment is made."""
    if not isinstance(config, ESConfig):
        return hybrid_parts.environment_options(config)
    small = config.network == "conv-lstm"
    atari = Atari(
        screen_size=config.screen_size or (42 if small else 84),
        frame_stack=config.frame_stack or (1 if small else 4),
        frame_skip=config.frame_skip,
        noop_max=config.noop_max,
        sticky_actions=config.sticky_actions,
        max_frames=config.max_frames,
    )
    return {
        "kwargs": dict(config.env_kwargs),
        "wrappers": config.wrapper,
        "max_episode_steps": config.max_episode_steps,
        "time_aware": config.time_aware,
        "atari": atari,
    }


def network_notices(task: Episodes) -> list[str]:
    """What is worth knowing about how a network is run."""
    if getattr(task.network, "batched", True):
        return []
    return [f"network {task.network.path} cannot be batched by torch.vmap: its members are run one by one"]  # type: ignore[attr-defined]


def default_slots(dimension: int, simulator: int = 0) -> int:
    """As many rows as keep their parameters and simulators in about a megabyte of cache; only speed depends on it."""
    return max(6, min(64, CACHE_BYTES // (4 * dimension + simulator)))


def build_state(config: ESConfig, task: Episodes) -> tuple[EvolutionStrategy, NoiseTable | None]:
    """The initial state of a run, and the noise table it uses."""
    if config.noise == "table" and config.table_size < 2 * task.network.dimension:
        raise UsageError(
            f"table_size is {config.table_size:,} and the policy has {task.network.dimension:,} parameters; "
            "the table must hold at least twice as many normals: enlarge it, or use --noise counter"
        )
    table = NoiseTable.create(config.seed, config.table_size) if config.noise == "table" else None
    center = task.network.initial(generator(config.seed, Purpose.INITIAL))
    return EvolutionStrategy(config, task, center, table), table


@contextlib.contextmanager
def open_engine(
    task: Episodes, workers: int | None, table: NoiseTable | None = None, step_timeout: float | None = None
) -> Iterator[Engine]:
    """The local engine with its workers (None: one per core; 0: in this process), closed whatever happens."""
    count = available_cores() if workers is None else workers
    engine: Engine = LocalEngine(task, count, table, step_timeout) if count else InlineEngine(task, table)
    try:
        yield engine
    finally:
        engine.close()


def ray_engine(
    config: ESConfig,
    task: Episodes,
    fingerprint: str | None,
    note: Callable[[str], None],
    run: str | None = None,
    epoch: int = 0,
    shared: NoiseTable | None = None,
) -> RayEngine:
    """The engine of the cluster that this process is connected to; detached where it is given its run's name.

    Nodes on this machine use the `shared` noise table of this process instead of one of their own.
    """
    from esker.cluster.connect import demand_of
    from esker.engines.node import setup_for
    from esker.engines.ray import RayEngine
    from esker.engines.roster import Roster

    table = (config.seed, config.table_size) if config.noise == "table" else None
    setup = setup_for(task, table, config.step_timeout, fingerprint, config.inexact, shared)
    return RayEngine(Roster(setup, demand_of(config, config.workers), run, epoch), note)


def available_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe(env: Env) -> dict[str, Any]:
    """What a run begins with: the environment's spaces, versions, the numeric fingerprint."""
    import torch

    from esker import __version__

    raw = env.env if isinstance(env, gym.wrappers.FlattenObservation) else env
    return {
        "observation_space": spaces.to_json(raw.observation_space),
        "action_space": spaces.to_json(env.action_space),
        "fingerprint": fingerprint(env),
        "started": time.time(),
        "versions": {
            "esker": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
            "gymnasium": gym.__version__,
        },
    }


def check_fingerprint(folder: RunFolder, env: Env, inexact: bool) -> list[str]:
    """Refuse a machine that computes other bits than the run began with, unless told to go on."""
    then, now = folder.about().get("fingerprint"), fingerprint(env)
    if then == now:
        return []
    text = f"this machine computes other bits than the one the run began on (numeric fingerprint {now}, then {then})"
    if not inexact:
        raise UsageError(f"{text}; to go on without bit-identity, add --inexact")
    return [f"{text}: going on, inexactly"]
