"""The typed configuration of the algorithms with gradients: TD3, the CEM-RL family, (1+1)-ES and AES-RL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from esker.config.device import check_device
from esker.config.logs import LogOptions
from esker.config.option import option
from esker.config.options import DEFAULT_TRAINING_STEPS, ClusterOptions, RunOptions, StopOptions
from esker.errors import UsageError
from esker.policies.mlp import Activation
from esker.strategies.rules import RULES_THAT_SCALE, MeanUpdate, VarUpdate

ACTORS = 5  # processes that train and roll out individuals, by default


@dataclass(frozen=True, kw_only=True)
class HybridEnvironmentOptions:
    """Environment"""

    env_kwargs: dict[str, Any] = option({}, "arguments of the environment")
    wrapper: tuple[str, ...] = option((), "module:callable that wraps it; repeatable, in order", repeatable=True)
    max_episode_steps: int | None = option(None, "end episodes after N steps (default: as registered)", low=1)
    fresh_environments: bool = option(
        False, "make a new environment for every episode, if reset alone does not reproduce it"
    )
    center_episodes: int = option(5, "episodes of the centre per generation", low=1, high=1_000_000)


@dataclass(frozen=True, kw_only=True)
class HybridEngineOptions(ClusterOptions):
    """Engine"""

    workers: int | None = option(None, "worker processes (default: the actors; 0: this process)", low=0)
    step_timeout: float | None = option(None, "replace a worker whose environment step takes longer than X seconds", above=0)
    device: str = option("cpu", "where critics and actors train: cpu, cuda, or cuda:N")


@dataclass(frozen=True, kw_only=True)
class HybridStopOptions(StopOptions):
    """Stop"""

    generations: int | None = option(None, "stop after N generations", low=1)
    training_steps: int | None = option(
        None,
        f"stop after N steps in the replay buffer, as papers count them (default: {DEFAULT_TRAINING_STEPS} if no stop)",
        low=1,
    )

    @property
    def limited(self) -> bool:
        """Whether a limit on the length of training is given."""
        return super().limited or self.training_steps is not None

    @property
    def generation_limit(self) -> int | None:
        """The limit of generations, which has no default here."""
        return self.generations

    @property
    def training_limit(self) -> int | None:
        """The limit of training steps; the default one where nothing is limited."""
        return self.training_steps if self.limited else DEFAULT_TRAINING_STEPS


@dataclass(frozen=True, kw_only=True)
class LearnerOptions:
    """Learner"""

    hidden: tuple[int, ...] = option((400, 300), "hidden layers of actor and critic", low=1)
    actor_activation: Activation = option("tanh", "activation of the actors")
    critic_activation: Activation = option("leaky_relu", "activation of the critics")
    lr: float = option(1e-3, "learning rate of actors and critics", above=0, high=1e6)
    batch_size: int = option(256, "transitions in a batch", low=1)
    discount: float = option(0.99, "discount of future rewards", low=0, high=1)
    tau: float = option(0.005, "step of the target networks per update", above=0, high=1)
    policy_noise: float = option(0.2, "smoothing noise on target actions, in units of the action bound", low=0)
    noise_clip: float = option(0.5, "limit of the smoothing noise, in units of the action bound", low=0)
    replay_size: int = option(200_000, "transitions in the replay buffer", low=1)
    initial_steps: int = option(10_000, "random steps before learning starts", low=0)
    compile: bool = option(False, "fuse updates with torch.compile: takes minutes to start, faster on a GPU, other bits")
    replay_file: bool = option(True, "keep every transition in the run folder, so that resuming is exact")


@dataclass(frozen=True, kw_only=True)
class TD3Options:
    """TD3"""

    exploration_noise: float = option(0.1, "noise on the actions taken, in units of the action bound", low=0)
    policy_delay: int = option(2, "critic updates per actor update", low=1)
    generation_steps: int = option(5_000, "a generation is whole episodes of at least N steps", low=1)
    update_every: int = option(1, "steps between bursts of as many updates; more suits a GPU", low=1)


@dataclass(frozen=True, kw_only=True)
class GaussianOptions:
    """Strategy"""

    var_init: float = option(1e-3, "initial variance of the individuals", above=0)
    rl_start: int = option(0, "training steps before gradients train individuals: evolution alone until then", low=0)


@dataclass(frozen=True, kw_only=True)
class CEMOptions:
    """Strategy"""

    population: int = option(10, "individuals per generation; asynchronous: results per generation", low=2, high=10_000_000)
    damp_init: float = option(1e-3, "noise added to the variance, at first", above=0)
    damp_limit: float = option(1e-5, "noise added to the variance, in the limit", above=0)
    damp_tau: float = option(0.90, "decay of that noise per generation", low=0, high=1)
    divide_variance: bool = option(True, "divide the elites' variance by their number; off: the paper's formula")


@dataclass(frozen=True, kw_only=True)
class SynchronousOptions:
    """Strategy"""

    rl_population: int = option(5, "individuals of each generation that are trained by gradients", low=0)
    antithetic: bool = option(True, "let member i + N/2 mirror member i")
    batched_rl: bool = option(False, "train those individuals together, by batched updates after the critic's: other bits")


@dataclass(frozen=True, kw_only=True)
class ActorOptions:
    """Actors and critic"""

    workers: int | None = option(None, "actor processes (default: 5; deterministic: 1; 0: this process)", low=0)
    critic_chunk: int = option(1_000, "critic updates between two reloads of the actor it bootstraps from", low=1)


@dataclass(frozen=True, kw_only=True)
class AsynchronousOptions:
    """Asynchronous loop"""

    rl_ratio: float = option(0.5, "share trained by gradients")
    rl_k: float = option(50.0, "how strictly that share is kept", above=0)
    results_per_generation: int = option(10, "results per row of the journal", low=1)
    deterministic: bool = option(False, "one actor, and the critic in step with it: exact, also after resuming")


@dataclass(frozen=True, kw_only=True)
class BaselineOptions:
    """Mean and variance"""

    mean_episodes: int = option(5, "episodes that measure the mean for each individual", low=1)
    var_floor: float = option(1e-5, "variances never fall below this", above=0)


@dataclass(frozen=True, kw_only=True)
class OnePlusOneOptions:
    """Mean and variance"""

    success_rate: float = option(0.2, "the variance grows above this share of successes, else it shrinks", low=0, high=1)
    success_tau: float = option(0.99, "factor of the variance's growth and decline", above=0, high=1)


@dataclass(frozen=True, kw_only=True)
class AESOptions:
    """Mean and variance"""

    mean_update: MeanUpdate = option("baseline-relative", "rule that moves the mean")
    mean_update_param: float | None = option(None, "c: the scale of fitness, or for baseline-absolute the baseline")
    var_update: VarUpdate = option("adaptive", "rule that moves the variance")
    fixed_var_n: float | None = option(None, "n of var_update fixed (the paper: 10)", low=1)
    negative_ratio: float = option(0.0, "how much of a negative move is made (fixed-linear)", low=0, high=1)


@dataclass(frozen=True, kw_only=True)
class HybridConfig(LearnerOptions, HybridEnvironmentOptions, HybridStopOptions, HybridEngineOptions, LogOptions, RunOptions):
    """Everything that decides the run of an algorithm with gradients."""

    checkpoint_every: int = option(1, "write a snapshot every N generations; a resume repeats what came after it", low=1)
    env: str = option("", "environment: a Gymnasium id, module:Id or module:make_env")
    algo: str = option("td3", "algorithm")

    init_from: ClassVar[None] = None  # a warm start is for the algorithms without gradients

    def elsewhere(self) -> Self:
        """This configuration for a process that only prepares the run for a cluster: its learner may have no GPU here."""
        return replace(self, device="cpu")

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        self.check_goal()
        self.check_logs()
        self.check_cluster(self.workers)
        if self.engine == "ray" and self.device not in ("cpu", "cuda"):
            raise UsageError(f"device is {self.device!r}; with --engine ray, Ray chooses the GPU: use --device cuda, or cpu")
        if self.device != "cpu" and self.engine == "local":
            check_device(self.device)


@dataclass(frozen=True, kw_only=True)
class TD3Config(TD3Options, HybridConfig):
    """Everything that decides a `td3` run."""

    algo: str = option("td3", "algorithm")
    hidden: tuple[int, ...] = option((256, 256), "hidden layers of actor and critic", low=1)
    lr: float = option(3e-4, "learning rate of actors and critics", above=0, high=1e6)
    replay_size: int = option(1_000_000, "transitions in the replay buffer", low=1)


@dataclass(frozen=True, kw_only=True)
class CEMRLConfig(GaussianOptions, CEMOptions, SynchronousOptions, HybridConfig):
    """Everything that decides a `cem-rl` run."""

    algo: str = option("cem-rl", "algorithm")
    batch_size: int = option(100, "transitions in a batch", low=1)
    replay_size: int = option(1_000_000, "transitions in the replay buffer", low=1)

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        super().check()
        if self.antithetic and self.population % 2:
            raise UsageError(
                f"population is {self.population}, and antithetic sampling needs an even number; "
                f"use --population {self.population + 1} or --no-antithetic"
            )
        if self.rl_population > self.population:
            raise UsageError(f"rl_population is {self.rl_population}; expected at most the population, {self.population}")


@dataclass(frozen=True, kw_only=True)
class PCEMRLConfig(ActorOptions, CEMRLConfig):
    """Everything that decides a `p-cem-rl` run."""

    algo: str = option("p-cem-rl", "algorithm")
    batch_size: int = option(256, "transitions in a batch", low=1)
    parallel_critic: bool = option(False, "train the critic continuously in a separate process; not exact on resume")

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        super().check()
        check_actors(self)
        if self.parallel_critic and self.workers == 0:
            raise UsageError(
                "--parallel-critic needs a process for the critic, and --workers 0 allows none; drop one of them"
            )


@dataclass(frozen=True, kw_only=True)
class AsynchronousConfig(GaussianOptions, AsynchronousOptions, ActorOptions, HybridConfig):
    """What the asynchronous algorithms share."""

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        super().check()
        check_actors(self)
        if not 0 <= self.rl_ratio <= 1:
            raise UsageError(f"rl_ratio is {self.rl_ratio:g}; expected a share from 0 to 1")
        if self.var_init < (floor := getattr(self, "var_floor", 0.0)):
            raise UsageError(f"var_init is {self.var_init:g}, below var_floor, {floor:g}; lower --var-floor, too")
        if self.deterministic and self.engine == "ray" and self.device != "cpu" and not self.gpus_per_node:
            raise UsageError("--deterministic trains the critic on the actor's node; add --gpus-per-node 1, or --device cpu")


@dataclass(frozen=True, kw_only=True)
class ACEMRLConfig(CEMOptions, AsynchronousConfig):
    """Everything that decides an `acem-rl` run."""

    algo: str = option("acem-rl", "algorithm")


@dataclass(frozen=True, kw_only=True)
class OnePlusOneConfig(OnePlusOneOptions, BaselineOptions, AsynchronousConfig):
    """Everything that decides a `one-plus-one` run."""

    algo: str = option("one-plus-one", "algorithm")


@dataclass(frozen=True, kw_only=True)
class AESRLConfig(AESOptions, BaselineOptions, AsynchronousConfig):
    """Everything that decides an `aes-rl` run."""

    algo: str = option("aes-rl", "algorithm")
    # Published with 5. One learns as well by training steps, and far faster by simulated ones: see docs/hybrids.md.
    mean_episodes: int = option(1, "episodes that measure the mean for each individual", low=1)

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        super().check()
        rule, c = self.mean_update, self.mean_update_param
        if c is None:
            raise UsageError(
                f"mean_update {rule} needs mean_update_param, the environment's scale of returns; "
                "as --mean-update-param 2000 (HalfCheetah), or take a preset"
            )
        if c <= 0 and rule in RULES_THAT_SCALE:
            raise UsageError(f"mean_update_param is {c:g}; mean_update {rule} needs a scale above 0")
        if self.var_update == "fixed" and self.fixed_var_n is None:
            raise UsageError("var_update fixed needs fixed_var_n, as --fixed-var-n 10")
        if self.var_update == "adaptive" and self.fixed_var_n is not None:
            raise UsageError("fixed_var_n is for --var-update fixed; the adaptive rule finds n by itself")
        if self.negative_ratio and rule != "fixed-linear":
            raise UsageError(f"negative_ratio is for --mean-update fixed-linear; {rule} never moves away")


def check_actors(config: Any) -> None:
    """Refuse numbers of processes that do not fit. Raises UsageError."""
    if getattr(config, "deterministic", False) and (config.workers or 0) > 1:
        raise UsageError(f"workers is {config.workers}, and --deterministic means one actor; give one of them")
