"""From a configuration to the parts of a run with gradients: task, state, pool and replay buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from esker.algorithms.algorithm import About, Algorithm, Site, Workers
from esker.algorithms.hybrid import Hybrid, Parts
from esker.config.device import check_device
from esker.config.hybrids import HybridConfig
from esker.engines.demand import Demand, critic_demand, demand_of
from esker.engines.pool import InlinePool, LocalPool, Pool
from esker.errors import UsageError
from esker.learners.replay import Replay
from esker.learners.rows import REPLAY_FILE, SharedRows, TransitionLayout
from esker.learners.spec import LearnerSpec
from esker.noise.address import Purpose
from esker.policies import spaces
from esker.policies.heads import BoxHead, refuse_whole_numbers
from esker.policies.mlp import MLP
from esker.policies.observations import is_image, shown
from esker.system.room import refuse_beyond_memory
from esker.tasks.episodes import Episodes
from esker.tasks.hybrid import HybridTask
from esker.worlds.environments import Environment

if TYPE_CHECKING:
    from esker.engines.ray_pool import RayPool


def build_task(config: HybridConfig, environment: Environment, about: About, device: str = "cpu") -> HybridTask:
    """The task of a configuration, for the spaces that `about` describes. What does not fit raises UsageError."""
    actions = spaces.described(about, "action_space")
    if not isinstance(actions, gym.spaces.Box):
        raise UsageError(
            f"{config.algo} needs continuous (Box) actions, and {environment.name} has {shown(actions)}; use --algo es"
        )
    if is_image(observations := spaces.described(about, "observation_space")):
        raise UsageError(
            f"{config.algo} needs vectors, and {environment.name} is observed as images of shape {observations.shape}; "
            "use --algo es --network linear or nature-cnn"
        )
    low, high = actions.low.astype(np.float32), actions.high.astype(np.float32)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise UsageError(f"{config.algo} needs bounded actions, and {environment.name} has {shown(actions)}; use --algo es")
    layout = TransitionLayout(gym.spaces.flatdim(observations), low.size)
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
        device=device,
        compile=config.compile,
    )
    network = MLP(spec.actor_sizes, config.actor_activation)
    _refuse_too_large(config, network.dimension, layout.width)
    head = BoxHead(low, high, "tanh")
    return HybridTask(environment, network, head, spec, config.seed, config.replay_size, config.fresh_environments)


def _refuse_too_large(config: HybridConfig, dimension: int, width: int) -> None:
    """Refuse individuals or batches that cannot fit this machine. Raises UsageError."""
    members, batch = getattr(config, "population", 1), config.batch_size
    what = f"{members:,} individuals of {dimension:,} parameters"
    refuse_beyond_memory(8 * members * dimension, what, "use a smaller --population or fewer --hidden")
    refuse_beyond_memory(4 * batch * width, f"batch_size is {batch:,}", "use a smaller one")


def policy_task(config: HybridConfig, environment: Environment, about: About) -> Episodes:
    """The task whose centre is a run's policy: its network and head, for evaluation, rendering and export."""
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


def open_parts(state: Hybrid, workers: Workers, site: Site) -> Parts:
    """Workers and replay buffer, to be closed whatever happens."""
    config, task = state.config, state.task
    rows = SharedRows.create(site.path / REPLAY_FILE if config.replay_file else None, task.spec.layout.width)
    replay = Replay(rows, config.replay_size, task.spec.device, task.replay_begin)
    replay.see(state.progress.training_steps)
    pool: Pool
    if config.engine == "ray":
        pool = ray_pool(config, task, workers, replay, site)
    elif workers.count:
        pool = LocalPool(task, rows, {"actor": workers.count, "critic": int(workers.critic)}, config.step_timeout)
    else:
        pool = InlinePool(task, rows)
    return Parts(pool, replay)


def ray_pool(config: HybridConfig, task: HybridTask, workers: Workers, replay: Replay, site: Site) -> RayPool:
    """The pool of the cluster that this process is connected to."""
    from esker.engines.node import setup_for
    from esker.engines.node_pool import NodePool
    from esker.engines.ray_pool import RayPool
    from esker.engines.roster import Roster

    def roster(device: str, demand: Demand) -> Roster:
        there = replace(task, spec=replace(task.spec, device=device))
        setup = setup_for(there, None, config.step_timeout, site.fingerprint, config.inexact)
        return Roster(setup, demand, kind=NodePool)

    rosters = {"actor": roster(config.device if config.gpus_per_node else "cpu", demand_of(config, workers.count))}
    if workers.critic:
        rosters["critic"] = roster(config.device, critic_demand(config))
    return RayPool(rosters, replay, config.replay_size, site.note)


def hybrid(
    name: str,
    config: type[HybridConfig],
    state: Callable[[Any, HybridTask], Hybrid],
    workers: Callable[[Any], Workers],
) -> Algorithm:
    """An algorithm with gradients: `state` is made from a configuration and its task."""

    def device_of(config: HybridConfig) -> str:
        """Where the process of the loop trains; on a cluster, a separate critic and the actors train elsewhere."""
        return config.device if config.engine == "local" or workers(config).learns_in_loop else "cpu"

    def start(config: HybridConfig, environment: Environment, about: About, new: bool = False) -> Hybrid:
        device = device_of(config)
        if device != "cpu":
            check_device(device)
        if new:
            refuse_whole_numbers(spaces.described(about, "action_space"))
        return state(config, build_task(config, environment, about, device))

    return Algorithm(
        name,
        config,
        start,
        policy_task=policy_task,
        open=lambda state, site: open_parts(state, workers(state.config), site),
        workers=workers,
        environment=environment_options,
        commits_facts=False,
    )
