"""The typed configuration: the single source of flags, files, presets, validation and help.

Every option is a field with a default, a help text and bounds. Its name is the flag (`--min-steps`), the key of
configuration files and presets (`min_steps`) and the keyword of the Python API.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from esker.config.device import DeviceOptions
from esker.config.environment import AtariOptions, EnvironmentOptions
from esker.config.logs import LogOptions
from esker.config.option import option
from esker.errors import UsageError
from esker.noise.directions import NoiseKind
from esker.noise.table import DEFAULT_TABLE_SIZE
from esker.policies.heads import ActionMode
from esker.policies.mlp import Activation, Initializer

# A literal or text is one of these names, or an import path module:name.
Shaping = Literal["centered_rank", "normalized", "log_utility", "sign", "centered_sign_rank", "raw"] | str
OptimizerName = Literal["adam", "adamw", "sgd", "rmsprop", "clipup"]
DEFAULT_GENERATIONS = 500
MOST_EPISODES = 100_000_000  # in a generation
DEFAULT_TRAINING_STEPS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Run"""

    seed: int = option(0, "equal seeds give bit-identical results", low=0)
    run_dir: str | None = option(None, "default: runs/<env>/<algo>-s<seed>-<time>")
    checkpoint_every: int = option(10, "write a snapshot every N generations", low=1)
    keep: int | None = option(5, "newest snapshots to keep besides the first and the best; 'none' keeps all", low=1)
    quiet: bool = option(False, "print only errors (what an environment prints still appears)")
    inexact: bool = option(False, "continue even if this machine computes other bits than the one the run began on")

    @property
    def exact_resets(self) -> bool:
        """Whether episodes must repeat from their seed."""
        return True

    def elsewhere(self) -> Self:
        """This configuration for a process that only prepares the run for a cluster."""
        return self

    def check_new(self) -> None:
        """Refuse what only earlier versions accepted: their runs still load, no new one begins so. Raises UsageError."""


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """Policy"""

    network: str = option("mlp", "mlp, linear, gru, lstm, nature-cnn, conv-lstm, or a torch module as module:Class")
    hidden: tuple[int, ...] = option((64, 64), "hidden layers, recurrent cell last", low=1)
    channels: int = option(32, "channels of every convolution (conv-lstm)", low=1)
    lstm_size: int = option(256, "size of the LSTM (conv-lstm)", low=1)
    reference_frames: int = option(
        32, "frames of random play that normalise layers (nature-cnn; OpenAI: 128) or pixels (conv-lstm)", low=2
    )
    activation: Activation | str = option("tanh", "activation of the hidden layers")
    initializer: Initializer = option(
        "xavier", "initial weights: Xavier uniform, OpenAI's normalised columns, or zero (linear)"
    )
    init_from: str | None = option(None, "start from a run, a checkpoint or a state dict")
    starts: int = option(1, "begin N times, each for start_steps, and go on from the best of these starts", low=1, high=1000)
    start_steps: int = option(1_000_000, "environment steps of each start (starts above 1)", low=1)
    normalize_observations: bool = option(True, "by running mean and variance")
    statistics_episodes: int = option(200, "episodes per generation that feed the observation statistics, about", low=1)
    action_mode: ActionMode = option("direct", "continuous actions: clip outputs, squash, or bin")
    bins: int = option(10, "bins per action dimension (action mode binned)", low=2)
    action_noise: float = option(0.0, "standard deviation of Gaussian noise on continuous actions in training", low=0)


OF_OWN = ("pgpe", "snes", "sep-cma", "cma")  # strategies that are algorithms, with options of their own


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """Strategy"""

    strategy: str = option("openai-es", "openai-es or module:Class")
    population: int = option(40, "members per generation", low=2, high=10_000_000)
    sigma: float = option(0.02, "scale of the perturbations", above=0, high=1e6)
    lr: float = option(0.01, "learning rate of the optimizer", above=0, high=1e6)
    optimizer: OptimizerName = option("adam", "optimizer that moves the centre")
    momentum: float | None = option(
        None, "momentum of sgd and rmsprop (default: 0) and of clipup (default: 0.9)", low=0, high=1
    )
    max_speed: float | None = option(None, "longest step of clipup (default: twice the learning rate)", above=0)
    weight_decay: float = option(0.0, "weight decay (L2; adamw: decoupled)", low=0, high=1e6)
    lr_decay: float = option(
        1.0, "multiply the learning rate, and clipup's maximum speed, by this after every generation", above=0, high=2
    )
    sigma_decay: float = option(1.0, "multiply sigma by this after every generation", above=0, high=2)
    shaping: Shaping = option("centered_rank", "how fitness becomes weights")
    top_directions: int | None = option(
        None, "move the centre only by the N best directions, by the better of their members (ARS)", low=1
    )
    antithetic: bool = option(True, "sample members in mirrored pairs")
    common_seeds: bool = option(True, "evaluate both members of a pair on the same episodes")

    def check_update(self) -> None:
        """Refuse update options that exclude each other. Raises UsageError."""
        if self.antithetic and self.population % 2:
            raise UsageError(
                f"population is {self.population}, and antithetic sampling needs an even number; "
                f"use --population {self.population + 1} or --no-antithetic"
            )
        if self.momentum and self.optimizer not in ("sgd", "rmsprop", "clipup"):
            raise UsageError(f"momentum is {self.momentum}, and {self.optimizer} has none; use --optimizer sgd or rmsprop")
        if self.max_speed is not None and self.optimizer != "clipup":
            raise UsageError(f"max_speed is {self.max_speed}, and {self.optimizer} has none; use --optimizer clipup")
        directions = self.population // 2 if self.antithetic else self.population
        if self.top_directions is not None and self.top_directions > directions:
            raise UsageError(f"top_directions is {self.top_directions}; a population of {self.population} has {directions}")


@dataclass(frozen=True, kw_only=True)
class MemberOptions:
    """Members"""

    episodes_per_member: int = option(1, "episodes averaged into a fitness", low=1, high=1_000_000)
    min_steps: int | None = option(
        None, "add members beyond the population until a generation has N environment steps", low=1, high=10**9
    )
    common_seeds: bool = option(True, "evaluate both members of a pair on the same episodes")
    center_episodes: int = option(4, "episodes of the centre per generation", low=1, high=1_000_000)
    noise: NoiseKind = option("table", "how perturbations are drawn")
    rank: int = option(1, "rank of each layer's perturbation (noise low-rank)", low=1, high=10_000)
    table_size: int = option(DEFAULT_TABLE_SIZE, "normals in the shared table (RLlib: 250000000, one GB)", low=1)


@dataclass(frozen=True, kw_only=True)
class StopOptions:
    """Stop"""

    generations: int | None = option(None, f"stop after N generations (default: {DEFAULT_GENERATIONS} if no stop)", low=1)
    steps: int | None = option(None, "stop after N environment steps", low=1)
    wall_time: float | None = option(None, "stop after X seconds of training, over all resumes", above=0)
    goal: float | None = option(None, "stop when the centre's mean return reaches X …")
    patience: int | None = option(None, "… in N generations in a row", low=1)

    @property
    def limited(self) -> bool:
        """Whether a limit on the length of training is given."""
        return any(limit is not None for limit in (self.generations, self.steps, self.wall_time))

    @property
    def generation_limit(self) -> int | None:
        """The limit of generations; the default if no limit is given."""
        return self.generations if self.limited else DEFAULT_GENERATIONS

    @property
    def training_limit(self) -> int | None:
        """The limit of training steps, which only the algorithms with gradients have."""
        return None

    def check_goal(self) -> None:
        """Refuse a goal without patience, or patience without a goal. Raises UsageError."""
        if (self.goal is None) != (self.patience is None):
            given, missing = ("goal", "patience") if self.patience is None else ("patience", "goal")
            raise UsageError(
                f"{given} is {getattr(self, given):g}, given without {missing}; give both, as --goal 475 --patience 5"
            )


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Engine"""

    engine: Literal["local", "ray"] = option("local", "this machine or a Ray cluster")
    address: str | None = option(None, "engine ray: HOST:PORT or auto (default: a local Ray)")
    cpus_per_worker: float = option(1.0, "engine ray: CPUs per worker, also fractions", above=0)
    gpus_per_node: float = option(0.0, "engine ray: GPUs per node", low=0)
    resources: dict[str, Any] = option({}, "engine ray: JSON object of Ray resources per node")
    working_dir: str | None = option(None, "engine ray: folder with your modules, sent to every node")

    def check_cluster(self, workers: int | None) -> None:
        """Refuse what only a cluster has, and what no cluster can give. Raises UsageError."""
        for name in CLUSTER_OPTIONS if self.engine == "local" else ():
            if getattr(self, name) != getattr(ClusterOptions(), name):
                raise UsageError(f"{name} is given, and the engine is local; add --engine ray")
        if self.engine == "ray" and workers == 0:
            raise UsageError("workers is 0, and a Ray engine needs at least one; leave --workers out to use every CPU")
        for name, amount in self.resources.items():
            if isinstance(amount, bool) or not isinstance(amount, int | float) or amount <= 0:
                raise UsageError(f"resources has {name!r}: {amount!r}; expected a number above 0")


CLUSTER_OPTIONS = tuple(f.name for f in fields(ClusterOptions) if f.name != "engine")  # for --engine ray only


@dataclass(frozen=True, kw_only=True)
class EngineOptions(ClusterOptions):
    """Engine"""

    workers: int | None = option(None, "processes (default: one per core; 0: this process)", low=0)
    slots: int | None = option(
        None, "environments per worker, stepped together (default: 6 to 64, by cache size)", low=1, high=65_536
    )
    step_timeout: float | None = option(None, "replace a worker whose environment step takes longer than X seconds", above=0)


@dataclass(frozen=True, kw_only=True)
class SynchronousConfig(
    MemberOptions,
    PolicyOptions,
    EnvironmentOptions,
    AtariOptions,
    StopOptions,
    DeviceOptions,
    EngineOptions,
    LogOptions,
    RunOptions,
):
    """What every synchronous algorithm has besides its strategy."""

    env: str = option("", "environment: a Gymnasium id, module:Id or module:make_env")
    algo: str = option("es", "algorithm")

    @property
    def exact_resets(self) -> bool:
        """Whether episodes must repeat from their seed: EnvPool's do not, and native ones always do."""
        return self.vectorizer == "gymnasium"

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        self.check_goal()
        self.check_cluster(self.workers)
        if self.noise != "low-rank" and self.rank != 1:
            raise UsageError(f"rank is {self.rank}, and it is for --noise low-rank; this is --noise {self.noise}")
        if self.action_mode != "binned" and self.bins != 10:
            raise UsageError("bins is for --action-mode binned")
        self.check_cap()
        if self.starts > 1 and self.init_from is not None:
            raise UsageError(f"starts is {self.starts}, and init_from names where to start; leave one of them out")
        if self.starts == 1 and self.start_steps != _default("start_steps"):
            raise UsageError(f"start_steps is {self.start_steps:,}, and there is one start; add --starts 4, say")
        self.check_logs()
        self.check_world(self)
        self._check_network()
        episodes = (getattr(self, "population", None) or 0) * self.episodes_per_member
        if episodes > MOST_EPISODES:
            raise UsageError(f"that makes {episodes:,} episodes in a generation; expected at most {MOST_EPISODES:,}")

    def check_new(self) -> None:
        """Refuse what only earlier versions accepted. Raises UsageError."""
        if self.starts > 1 and self.steps is not None and self.steps <= self.starts * self.start_steps:
            raise UsageError(
                f"steps is {self.steps:,}, and {self.starts} starts of {self.start_steps:,} leave none of them to go on "
                "from the best; raise --steps, or lower --starts or --start-steps"
            )
        screen = self._screen_options()
        if screen and self.env_kwargs.get("obs_type") == "ram":
            raise UsageError(f"{screen[0]} is for the screen of a game, and env_kwargs asks for its memory (obs_type ram)")

    def _screen_options(self) -> list[str]:
        return [f.name for f in fields(AtariOptions) if getattr(self, f.name) != f.default]

    def _check_network(self) -> None:
        if self.initializer == "zero" and self.network != "linear":
            raise UsageError(
                f"initializer zero is for --network linear, and this is {self.network}; use --initializer xavier"
            )
        for name, networks in NETWORK_OPTIONS.items():
            if self.network not in networks and getattr(self, name) != _default(name):
                raise UsageError(f"{name} is for --network {' or '.join(networks)}, and this is {self.network}")
        if self.vectorizer == "envpool" and self.fresh_environments:
            raise UsageError("fresh_environments is for exact runs, which EnvPool's are not; use --vectorizer gymnasium")
        if self.vectorizer == "native" and self.fresh_environments:
            raise UsageError("fresh_environments is for Gymnasium's, and vectorizer is native; use --vectorizer gymnasium")
        given = self._screen_options()
        if given and not self.env.startswith("ALE/"):
            raise UsageError(f"{given[0]} is for Atari environments (ALE/…), and this is {self.env}")


@dataclass(frozen=True, kw_only=True)
class ESConfig(UpdateOptions, SynchronousConfig):
    """Everything that decides an `es` run."""

    def check(self) -> None:
        """Refuse options that contradict each other. Raises UsageError."""
        self.check_update()
        super().check()


# Options that only some networks have.
NETWORK_OPTIONS = {
    "hidden": ("mlp", "gru", "lstm"),
    "activation": ("mlp", "gru", "lstm"),
    "initializer": ("mlp", "linear", "gru", "lstm", "nature-cnn", "conv-lstm"),
    "channels": ("conv-lstm",),
    "lstm_size": ("conv-lstm",),
    "reference_frames": ("nature-cnn", "conv-lstm"),
}


def _default(name: str) -> Any:
    return next(f.default for f in fields(PolicyOptions) if f.name == name)
