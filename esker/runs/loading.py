"""What training left: a run or a checkpoint to look at, to load and to evaluate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from esker.algorithms import registry
from esker.algorithms.loop import Outcome
from esker.algorithms.observer import Row
from esker.algorithms.snapshot import Snapshot
from esker.engines.open import local_engine
from esker.engines.plan import Plan
from esker.errors import RunError, UsageError
from esker.noise.address import Purpose
from esker.policies import spaces
from esker.policies.custom import network_name
from esker.policies.normalizer import Statistics
from esker.policies.policy import Policy
from esker.runs import checkpoints, snapshots
from esker.runs.better import likely_better
from esker.runs.checkpoints import DamagedCheckpoint
from esker.runs.evaluation import Evaluated, Evaluation
from esker.runs.folder import RunFolder, is_checkpoint
from esker.runs.places import place
from esker.runs.pointers import wanted
from esker.runs.recovery import rewind
from esker.runs.trust import OF_CLUSTER, OF_ENVIRONMENT, OF_TRAINING, Trust
from esker.tasks.episodes import Episodes
from esker.tasks.task import Job
from esker.worlds.environments import Env, Environment, Flattened, resolve, with_factory
from esker.worlds.vectorizers import exact_vectorizer

MOST_EPISODES = 1_000_000


class Run:
    """A run folder, to look at and to use."""

    def __init__(self, path: str | Path, outcome: Outcome | None = None, env: Callable[..., Env] | None = None) -> None:
        self.folder = RunFolder.open(Path(path))
        self.outcome = outcome
        self.env = env  # what made its environment, where that was a Python object

    @property
    def path(self) -> Path:
        """Where the run is."""
        return self.folder.path

    @property
    def config(self) -> Any:
        """The resolved configuration."""
        return self.folder.config(registry.options_of)

    @property
    def history(self) -> list[Row]:
        """The journal, a row per generation."""
        return self.folder.rows()

    @property
    def best_return(self) -> float | None:
        """The best centre's mean return: in episodes played when the run ended, else with the centres just before it."""
        return self.folder.best_return()

    @property
    def status(self) -> str:
        """running, finished, interrupted, failed or crashed; with the reason where there is one."""
        return self.folder.status()

    def policy(self, checkpoint: str | int = "best", *, trust: Trust = False) -> Policy:
        """The policy of a checkpoint: "best", "latest" or a generation."""
        return load(self.path, checkpoint, trust=trust)

    def make_env(self, *, trust: Trust = False, **kwargs: Any) -> Env:
        """A new environment as `policy()` knows it: with the run's wrappers, a game's frames and actions as trained on.

        `kwargs` are for the environment itself, as render_mode="human". What cannot be made raises UsageError.
        """
        return make_env(self.path, env=self.env, trust=trust, **kwargs)


@dataclass(frozen=True)
class LoadedCheckpoint:
    """A snapshot with what it needs to act: taken from a run, or from a checkpoint folder on its own."""

    config: Any
    about: dict[str, Any]
    snapshot: Snapshot
    notices: list[str]
    folder: RunFolder | None = None  # None: a checkpoint folder on its own


def open_checkpoint(
    path: str | Path, checkpoint: str | int = "best", trust: Trust = False, unused: frozenset[str] = OF_ENVIRONMENT
) -> LoadedCheckpoint:
    """A checkpoint of a run folder, or the one that a bare checkpoint folder holds. Wrong requests raise UsageError.

    A folder that names code is refused unless it was made on this machine or `trust` names the modules. Options that are
    `unused` by the caller do not count: by default those of the environment.
    """
    path = place(path)
    if not is_checkpoint(path):
        folder = _described(path, trust, unused)
        config, about = folder.config(registry.options_of), folder.about()
        snapshot, notices = find_snapshot(folder, checkpoint)
        return LoadedCheckpoint(config, about, snapshot, [*folder.damage, *notices], folder)
    try:
        snapshot = checkpoints.read(path)
    except DamagedCheckpoint as error:
        raise UsageError(f"checkpoint {error}; the run it came from can recompute it from its facts") from error
    if str(checkpoint) not in ("best", "latest", str(snapshot.generation)):
        raise UsageError(f"checkpoint is {checkpoint!r}, and {str(path)!r} holds only generation {snapshot.generation}")
    home = _described(path, trust, unused)
    return LoadedCheckpoint(home.config(registry.options_of), home.about(), snapshot, [])


def _described(path: Path, trust: Trust, unused: frozenset[str]) -> RunFolder:
    """The folder whose configuration is that of a run, or of a checkpoint on its own. Untrusted code raises UsageError."""
    if not is_checkpoint(path):
        folder = RunFolder.open(path)
        if folder.algo in registry.OF_PYTHON:  # refused as such, wherever it was made
            policy_maker(folder.config(registry.options_of))
    else:
        folder = RunFolder(path if (path / "config.toml").is_file() else path.resolve().parent.parent)
        if not folder.config_file.is_file():
            raise UsageError(f"{str(path)!r} has no config.toml next to it; copy config.toml and about.json from its run")
    folder.check_trust(trust, unused | OF_CLUSTER | OF_TRAINING)
    return folder


def find_snapshot(folder: RunFolder, checkpoint: str | int) -> tuple[Snapshot, list[str]]:
    """A run's snapshot, replayed from facts where none is left or it is damaged. Unknown ones raise UsageError."""
    algorithm = registry.find(folder.algo)
    if not algorithm.commits_facts:
        return snapshots.find(folder, checkpoint)
    committed = folder.committed()
    if not committed and not checkpoints.generations(folder.checkpoints):
        raise UsageError(f"run {str(folder.path)!r} has no checkpoint yet; continue it with: esker resume {folder.path}")
    generation, notices = wanted(folder, checkpoint, committed)
    if generation > committed:
        kept = ", ".join(str(g) for g in checkpoints.generations(folder.checkpoints))
        raise UsageError(f"generation {generation} does not exist; this run has 0 to {committed} (snapshots: {kept})")
    snapshot, damaged = folder.newest(generation)
    if snapshot is not None and snapshot.generation == generation:
        return snapshot, notices + damaged
    config = folder.config(registry.options_of)
    state = algorithm.start(config, Environment(config.env), folder.about(), False)
    rewind(folder, state, generation)
    state.close()
    return state.snapshot(), [*notices, *damaged, f"generation {generation} was recomputed from the facts"]


def load(run_dir: str | Path, checkpoint: str | int = "best", *, network: Any = None, trust: Trust = False) -> Policy:
    """The policy of a run: `esker.load(run).act(observation)`. Needs neither the environment nor the training machine.

    `network` is needed where the run was trained with an object that cannot be imported, in another process than this.

    A network named by import path is imported only if the run was made on this machine or `trust` allows it: a list of
    modules, or True for all.
    """
    if network is not None:
        network_name(network)  # known from here on
    return policy_of(open_checkpoint(run_dir, checkpoint, trust))


def make_env(run_dir: str | Path, *, env: Callable[..., Env] | None = None, trust: Trust = False, **kwargs: Any) -> Env:
    """A new environment as the policy of a run, a checkpoint or a card knows it: wrappers, a game's frames and actions.

    `env` is needed where it was a Python object; `kwargs` are for the environment itself, as render_mode="human".
    What cannot be made, or names code that is not trusted, raises UsageError.
    """
    folder = _described(place(run_dir), trust, frozenset() if env is None else frozenset({"env"}))
    config = folder.config(registry.options_of)
    policy_maker(config)  # a run of Evolution has no environment
    made = replace(environment_of(config, env), flat=False).make(**kwargs)
    return made.env if isinstance(made, Flattened) else made  # policies flatten observations themselves


def policy_maker(config: Any) -> Callable[[Any, Environment, dict[str, Any]], Episodes]:
    """What makes the task of a run's policy. A run of `esker.Evolution` has none and raises UsageError."""
    make = registry.find(config.algo).policy_task
    if make is None:
        raise UsageError(
            f"this is a run of esker.Evolution ({config.env}), whose model is not a policy of an environment; "
            "esker.Evolution.resume(run_dir, model, reward) puts its best parameters into the model"
        )
    return make


def policy_task(trained: LoadedCheckpoint, environment: Environment) -> Episodes:
    """The task whose centre is the policy of a snapshot."""
    task = policy_maker(trained.config)(trained.config, environment, trained.about)
    return task.with_reference(trained.snapshot.arrays.get("reference"))


def policy_of(trained: LoadedCheckpoint) -> Policy:
    """The policy that acts with a snapshot."""
    config, about, snapshot = trained.config, trained.about, trained.snapshot
    task = policy_task(trained, Environment(config.env))
    normalizer = _normalizer(snapshot) if task.normalize else None
    space = spaces.described(about, "observation_space")
    return Policy(task.network, task.head, snapshot.arrays["center"], normalizer, space)


def evaluate(
    run_dir: str | Path,
    *,
    episodes: int = 100,
    checkpoint: str | int = "best",
    seed: int = 0,
    workers: int | None = None,
    env: Callable[..., Env] | None = None,
    trust: Trust = False,
) -> Evaluated:
    """Evaluate a checkpoint over seeded episodes; returns the evaluation and notices.

    A notice is about what had to be repaired, or names another checkpoint of the run that is likely better.
    """
    if not 1 <= episodes <= MOST_EPISODES:
        limit = "at least 1" if episodes < 1 else f"at most {MOST_EPISODES:,}"
        raise UsageError(f"episodes is {episodes}; expected {limit}")
    if seed < 0:
        raise UsageError(f"seed is {seed}; expected at least 0")
    trained = open_checkpoint(run_dir, checkpoint, trust, unused=frozenset() if env is None else frozenset({"env"}))
    config, snapshot = trained.config, trained.snapshot
    environment = environment_of(config, env)
    task = replace(
        policy_task(trained, environment),
        vectorizer=exact_vectorizer(environment, config.fresh_environments),  # an evaluation repeats from its seed
        seed=seed,
        center_episodes=episodes,
        center_purpose=Purpose.EVALUATION,
    )
    normalizer = _normalizer(snapshot) if task.normalize else None

    def refuse(result: Any) -> None:
        raise RunError(f"{task.describe(0, result.item)}: {result.error}\n{result.trace}".rstrip())

    plan = Plan(0, center=episodes, refuse=refuse)
    with contextlib.closing(local_engine(task, workers)) as engine:
        engine.evaluate(Job.of_center(snapshot.arrays["center"], normalizer), plan)
    results = plan.of_center()
    evaluation = Evaluation([r.total for r in results], [r.length for r in results], snapshot.generation)
    better = None if env is not None or trained.folder is None else _better(trained.folder, config, evaluation)
    return Evaluated(evaluation, trained.notices if better is None else [*trained.notices, better])


def _better(folder: RunFolder, config: Any, evaluation: Evaluation) -> str | None:
    """The notice about a checkpoint that is likely better."""
    if registry.find(config.algo).commits_facts:
        available: Container[int] = range(folder.committed() + 1)
    else:
        available = checkpoints.generations(folder.checkpoints)
    return likely_better(folder.rows(), evaluation, getattr(config, "center_episodes", 1), available)


def _normalizer(snapshot: Snapshot) -> Any:
    arrays = snapshot.arrays
    return Statistics(
        snapshot.values["statistics_count"], arrays["statistics.total"], arrays["statistics.squares"]
    ).normalizer()


def environment_of(config: Any, factory: Callable[..., Env] | None = None) -> Environment:
    """The environment of a resolved configuration."""
    options = registry.find(config.algo).environment(config)
    if factory is not None:
        return with_factory(factory, **options)
    if config.env.startswith("__main__:") or "<" in config.env:
        raise UsageError(
            f"the environment {config.env!r} was a Python object; pass it again, as esker.evaluate(run_dir, env=…), "
            "esker.resume(run_dir, env=…) or esker.Run(run_dir, env=…)"
        )
    return resolve(config.env, **options)[0]
