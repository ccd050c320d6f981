"""From a configuration to the parts of a run with gradients: task, state, pool and replay buffer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from esker.address import Purpose
from esker.config_hybrids import HybridConfig
from esker.errors import UsageError
from esker.learners.rows import Layout, SharedRows
from esker.learners.spec import LearnerSpec
from esker.policies import spaces
from esker.policies.heads import BoxHead
from esker.policies.mlp import MLP
from esker.tasks.environments import Environment
from esker.tasks.episodes import Episodes
from esker.tasks.hybrid import HybridTask

REPLAY_FILE = "replay"


def build_task(config: HybridConfig, environment: Environment, about: dict[str, Any]) -> HybridTask:
    """The task of a configuration, for the spaces that `about` describes. What does not fit raises UsageError."""
    actions = spaces.from_json(about["action_space"])
    if not isinstance(actions, gym.spaces.Box):
        raise UsageError(
            f"{config.algo} needs continuous (Box) actions, and {environment.name} has {actions}; use --algo es"
        )
    low, high = actions.low.astype(np.float32), actions.high.astype(np.float32)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise UsageError(f"{config.algo} needs bounded actions, and {environment.name} has {actions}; use --algo es")
    layout = Layout(gym.spaces.flatdim(spaces.from_json(about["observation_space"])), low.size)
    spec = LearnerSpec(
        layout,
        tuple(low.reshape(-1).tolist()),
        tuple(high.reshape(-1).tolist()),
        hidden=config.hidden,
        actor_activation=config.actor_activation,
        critic_activation=config.critic_activation,
        lr=config.lr,
        batch=config.batch_size,
        discount=config.discount,
        tau=config.tau,
        policy_noise=config.policy_noise,
        noise_clip=config.noise_clip,
        device=config.device,
        compile=config.compile,
    )
    network = MLP(spec.actor_sizes, config.actor_activation)
    head = BoxHead(low, high, "tanh")
    return HybridTask(environment, network, head, spec, config.seed, config.replay_size, config.fresh_environments)


def build_state(config: Any, task: HybridTask) -> Any:
    """The initial state of a run."""
    if config.algo == "td3":
        from esker.algorithms.td3 import TD3Run

        return TD3Run(config, task)
    if config.algo in ("cem-rl", "p-cem-rl"):
        from esker.algorithms.cem_rl import CEMRL

        return CEMRL(config, task)
    from esker.algorithms.asynchronous import Asynchronous

    return Asynchronous(config, task)


def acting_task(config: HybridConfig, environment: Environment, about: dict[str, Any]) -> Episodes:
    """The task whose centre is a run's policy: its network and head, for whoever evaluates, renders or exports it."""
    task = build_task(config, environment, about)
    return Episodes(
        environment=environment,
        network=task.network,
        head=task.head,
        seed=config.seed,
        normalize=False,
        center_purpose=Purpose.EVALUATION,
        fresh_environments=config.fresh_environments,
    )


def environment_options(config: HybridConfig) -> dict[str, Any]:
    """How a configuration makes its environment."""
    options = {"kwargs": dict(config.env_kwargs), "wrappers": config.wrapper}
    return {**options, "max_episode_steps": config.max_episode_steps}


def open_parts(config: Any, task: HybridTask, folder: Path, training_steps: int) -> Any:
    """Workers and replay buffer, to be closed whatever happens."""
    from esker.algorithms.hybrid import Parts
    from esker.engines.pool import InlinePool, LocalPool, Pool
    from esker.learners.replay import Replay

    rows = SharedRows.create(folder / REPLAY_FILE if config.replay_file else None, task.spec.layout.width)
    replay = Replay(rows, config.replay_size, config.device)
    replay.see(training_steps if config.replay_file else 0)
    kinds = processes(config)
    pool: Pool = LocalPool(task, rows, kinds, config.step_timeout) if kinds["actor"] else InlinePool(task, rows)
    return Parts(pool, replay)


def processes(config: Any) -> dict[str, int]:
    """How many processes of each kind a configuration wants; no actor: everything inside this process."""
    from esker.assemble import available_cores

    if config.algo == "td3":
        return {"actor": config.workers or 0, "critic": 0}
    if config.algo == "cem-rl":
        return {"actor": available_cores() if config.workers is None else config.workers, "critic": 0}
    if getattr(config, "deterministic", False):
        return {"actor": 1 if config.workers is None else config.workers, "critic": 0}
    actors = config.actors if config.workers is None else config.workers
    apart = config.algo != "p-cem-rl" or config.parallel_critic
    return {"actor": actors, "critic": 1 if apart else 0}
