"""From a configuration to the parts of a run with gradients: task, state, pool and replay buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from esker.config.hybrids import HybridConfig
from esker.errors import UsageError
from esker.learners.rows import REPLAY_FILE, Layout, SharedRows
from esker.learners.spec import LearnerSpec
from esker.noise.address import Purpose
from esker.policies import spaces
from esker.policies.heads import BoxHead
from esker.policies.mlp import MLP
from esker.runs.folder import RunFolder
from esker.tasks.episodes import Episodes
from esker.tasks.hybrid import HybridTask
from esker.worlds.environments import Environment

if TYPE_CHECKING:
    from esker.engines.ray_pool import RayPool
    from esker.learners.replay import Replay

Note = Callable[[str], None]


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
        device=loop_device(config),
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


def open_parts(config: Any, task: HybridTask, folder: RunFolder, training_steps: int, note: Note) -> Any:
    """Workers and replay buffer, to be closed whatever happens."""
    from esker.algorithms.hybrid import Parts
    from esker.engines.pool import InlinePool, LocalPool, Pool
    from esker.learners.replay import Replay

    rows = SharedRows.create(folder.path / REPLAY_FILE if config.replay_file else None, task.spec.layout.width)
    replay = Replay(rows, config.replay_size, task.spec.device, task.replay_begin)
    replay.see(training_steps)
    kinds = processes(config)
    pool: Pool
    if config.engine == "ray":
        pool = ray_pool(config, task, replay, folder.about()["fingerprint"], note)
    else:
        pool = LocalPool(task, rows, kinds, config.step_timeout) if kinds["actor"] else InlinePool(task, rows)
    return Parts(pool, replay)


def ray_pool(config: Any, task: HybridTask, replay: Replay, fingerprint: str | None, note: Note) -> RayPool:
    """The pool of the cluster that this process is connected to."""
    from esker.cluster.connect import critic_demand, demand_of
    from esker.engines.node import setup_for
    from esker.engines.node_pool import NodePool
    from esker.engines.ray_pool import RayPool
    from esker.engines.roster import Roster

    def roster(device: str, demand: Any) -> Roster:
        there = replace(task, spec=replace(task.spec, device=device))
        setup = setup_for(there, None, config.step_timeout, fingerprint, config.inexact)
        return Roster(setup, demand, kind=NodePool)

    kinds = processes(config)
    rosters = {"actor": roster(config.device if config.gpus_per_node else "cpu", demand_of(config, kinds["actor"]))}
    if kinds["critic"]:
        rosters["critic"] = roster(config.device, critic_demand(config))
    return RayPool(rosters, replay, config.replay_size, note)


def loop_device(config: Any) -> str:
    """Where the process of the loop trains; on a cluster, a critic of its own and the actors train elsewhere."""
    elsewhere = config.engine == "ray" and not learns_in_loop(config)
    return "cpu" if elsewhere else str(config.device)


def learns_in_loop(config: Any) -> bool:
    """Whether the process of the loop trains networks itself."""
    return not processes(config)["critic"] and not getattr(config, "deterministic", False)


def processes(config: Any) -> dict[str, int]:
    """How many processes of each kind a configuration wants; no actor: everything inside this process."""
    from esker.runs.assembly import available_cores

    if config.algo == "td3":
        return {"actor": config.workers or (1 if config.engine == "ray" else 0), "critic": 0}
    if config.algo == "cem-rl":
        most = config.population if config.address is not None else available_cores()
        return {"actor": most if config.workers is None else config.workers, "critic": 0}
    if getattr(config, "deterministic", False):
        return {"actor": 1 if config.workers is None else config.workers, "critic": 0}
    actors = config.actors if config.workers is None else config.workers
    apart = config.algo != "p-cem-rl" or config.parallel_critic
    return {"actor": actors, "critic": 1 if apart else 0}
