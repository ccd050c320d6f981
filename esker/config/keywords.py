"""The options of `train`, `resume` and `Evolution` as types. Written by esker.tools.keywords; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict


class TrainOptions(TypedDict, total=False):
    """Every option of every algorithm; those of the one in use are checked when it runs."""

    action_mode: Literal["direct", "tanh", "binned"]
    action_noise: float
    actions: Sequence[str] | str
    activation: Literal["tanh", "relu", "leaky_relu", "elu", "selu", "silu"] | str
    active: bool
    actor_activation: Literal["tanh", "relu", "leaky_relu", "elu", "selu", "silu"]
    adaptive_cap: Literal["threshold", "twice-mean"] | None
    address: str | None
    antithetic: bool
    batch_size: int
    batched_rl: bool
    bins: int
    cap_growth: Mapping[str, Any] | str
    center_episodes: int
    channels: int
    checkpoint_every: int
    common_seeds: bool
    compile: bool
    cpus_per_worker: float
    critic_activation: Literal["tanh", "relu", "leaky_relu", "elu", "selu", "silu"]
    critic_chunk: int
    crop: Sequence[int] | str
    damp_init: float
    damp_limit: float
    damp_tau: float
    deterministic: bool
    device: str | None
    discount: float
    divide_variance: bool
    engine: Literal["local", "ray"]
    env_kwargs: Mapping[str, Any] | str
    episodes_per_member: int
    exploration_noise: float
    fire: bool
    fixed_var_n: float | None
    frame_skip: int
    frame_stack: int | None
    fresh_environments: bool
    generation_steps: int
    generations: int | None
    goal: float | None
    gpus_per_node: float
    hidden: Sequence[int] | str
    inexact: bool
    init_from: str | Path | None
    initial_steps: int
    initializer: Literal["xavier", "normalized-columns", "zero"]
    keep: int | None
    log: Sequence[Literal["tensorboard", "wandb", "csv"]] | str
    lr: float | None
    lr_decay: float
    lstm_size: int
    max_episode_steps: int | None
    max_frames: int
    max_speed: float | None
    mean_episodes: int
    mean_update: Literal["fixed-linear", "fixed-sigmoid", "baseline-absolute", "baseline-relative"]
    mean_update_param: float | None
    min_steps: int | None
    momentum: float | None
    negative_ratio: float
    network: Any
    noise: Literal["table", "counter", "low-rank"]
    noise_clip: float
    noop_max: int
    normalize_observations: bool
    on_error: Literal["stop", "worst"]
    optimizer: Literal["adam", "adamw", "sgd", "rmsprop", "clipup"]
    parallel_critic: bool
    patience: int | None
    policy_delay: int
    policy_noise: float
    population: int | None
    quiet: bool
    rank: int
    reference_frames: int
    replay_file: bool
    replay_size: int
    resources: Mapping[str, Any] | str
    restart_kind: Literal["ipop", "bipop"]
    restarts: int
    results_per_generation: int
    rl_k: float
    rl_population: int
    rl_ratio: float
    rl_start: int
    run_dir: str | Path | None
    screen_size: int | None
    screen_width: int | None
    seed: int
    shaping: Literal["centered_rank", "normalized", "log_utility", "sign", "centered_sign_rank", "raw"] | str
    sigma: float
    sigma_decay: float
    slots: int | None
    start_steps: int
    starts: int
    statistics_episodes: int
    stdev_lr: float | None
    stdev_max_change: float | None
    step_timeout: float | None
    steps: int | None
    sticky_actions: float
    strategy: str
    success_rate: float
    success_tau: float
    survival_bonus: float | None
    table_size: int
    tau: float
    time_aware: bool
    top_directions: int | None
    training_steps: int | None
    update_every: int
    var_floor: float
    var_init: float
    var_update: Literal["fixed", "adaptive"]
    vectorizer: Literal["gymnasium", "native", "envpool", "auto"] | None
    wall_time: float | None
    wandb_entity: str | None
    wandb_group: str | None
    wandb_id: str | None
    wandb_mode: Literal["online", "offline"] | None
    wandb_name: str | None
    wandb_project: str | None
    wandb_tags: Sequence[str] | str
    weight_decay: float
    workers: int | None
    working_dir: str | Path | None
    world: str | None
    wrapper: Sequence[str] | str


class ResumeChanges(TypedDict, total=False):
    """What a resumed run may change."""

    address: str | None
    checkpoint_every: int | None
    cpus_per_worker: float
    device: str | None
    engine: Literal["local", "ray"]
    generations: int | None
    goal: float | None
    gpus_per_node: float
    inexact: bool
    keep: int | None
    log: Sequence[Literal["tensorboard", "wandb", "csv"]] | str
    patience: int | None
    quiet: bool
    resources: Mapping[str, Any] | str
    slots: int | None
    step_timeout: float | None
    steps: int | None
    training_steps: int | None
    wall_time: float | None
    wandb_entity: str | None
    wandb_group: str | None
    wandb_id: str | None
    wandb_mode: Literal["online", "offline"] | None
    wandb_name: str | None
    wandb_project: str | None
    wandb_tags: Sequence[str] | str
    workers: int | None
    working_dir: str | Path | None


class EvolutionOptions(TypedDict, total=False):
    """The options of `esker.Evolution`."""

    address: str | None
    anchor_decay: float
    antithetic: bool
    center_evaluations: int
    checkpoint_every: int
    common_seeds: bool
    cpus_per_worker: float
    device: str | None
    dtype: Literal["float32", "bfloat16", "float16"]
    engine: Literal["local", "ray"]
    evaluations_per_member: int
    executor: Literal["processes", "threads"]
    final: Literal["best", "last"]
    generations: int | None
    goal: float | None
    gpus_per_node: float
    gradients: bool
    inexact: bool
    int8: bool
    keep: int | None
    log: Sequence[Literal["tensorboard", "wandb", "csv"]] | str
    lr: float
    lr_decay: float
    max_speed: float | None
    members_per_batch: int | None
    momentum: float | None
    noise: Literal["table", "counter", "low-rank"]
    on_error: Literal["stop", "worst"]
    optimizer: Literal["adam", "adamw", "sgd", "rmsprop", "clipup"]
    patience: int | None
    population: int
    quiet: bool
    rank: int
    resources: Mapping[str, Any] | str
    run_dir: str | Path | None
    seed: int
    shaping: Literal["centered_rank", "normalized", "log_utility", "sign", "centered_sign_rank", "raw"] | str
    sigma: float
    sigma_decay: float
    steps: int | None
    strategy: str
    table_size: int
    timeout: float | None
    top_directions: int | None
    vectors: Literal["noise", "keep"]
    wall_time: float | None
    wandb_entity: str | None
    wandb_group: str | None
    wandb_id: str | None
    wandb_mode: Literal["online", "offline"] | None
    wandb_name: str | None
    wandb_project: str | None
    wandb_tags: Sequence[str] | str
    weight_decay: float
    workers: int | None
    working_dir: str | Path | None
