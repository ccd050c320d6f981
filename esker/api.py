"""The Python API: train, resume, load, evaluate."""

from __future__ import annotations

import contextlib
import signal
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from esker import hybrids, presets
from esker.address import Purpose
from esker.algorithms.loop import Observer, Outcome, Returns, Row, catch_up, rewind
from esker.algorithms.loop import train as train_loop
from esker.assemble import (
    build_state,
    build_task,
    check_fingerprint,
    describe,
    environment_options,
    network_notices,
    open_engine,
    ray_engine,
)
from esker.compatibility import translate
from esker.config import ALGORITHMS, CLUSTER_OPTIONS, RESUMABLE, ESConfig
from esker.configure import build, read_values, to_toml
from esker.engines.engine import Engine
from esker.engines.plan import Plan
from esker.errors import RunError, UsageError
from esker.logs.backends import with_backends
from esker.logs.console import observer_for
from esker.policies import spaces
from esker.policies.normalizer import Statistics
from esker.policies.policy import Policy
from esker.requested import refuse_others, settle_request
from esker.runs import checkpoints
from esker.runs.checkpoints import DamagedCheckpoint, Snapshot
from esker.runs.folder import Checkpoint, RunFolder, default_path, is_checkpoint
from esker.tasks.environments import Env, Environment, reset_is_exact, resolve, tried, with_factory
from esker.tasks.pooled import choose_vectorizer
from esker.tasks.reference import collect_reference
from esker.tasks.task import Job
from esker.warm_start import warm_start

EnvironmentLike = str | Callable[..., Env]
Stop = bool | str | None  # what a callback answers: True, or a text that says why, stops the run


class Interrupted(KeyboardInterrupt):
    """Training was interrupted; everything committed is saved in `folder`."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(f"interrupted; continue with: esker resume {folder.path}")
        self.folder = folder


@dataclass(frozen=True)
class Evaluation:
    """Returns and lengths of some episodes of one policy."""

    returns: list[float]
    lengths: list[int]
    checkpoint: int

    def summary(self) -> dict[str, Any]:
        """The numbers that `esker eval --json` prints."""
        return {
            "episodes": len(self.returns),
            "mean": statistics.fmean(self.returns),
            "std": statistics.pstdev(self.returns),
            "min": min(self.returns),
            "max": max(self.returns),
            "median": statistics.median(self.returns),
            "length_mean": statistics.fmean(self.lengths),
            "checkpoint": self.checkpoint,
        }


class Run:
    """A run folder, to look at and to use."""

    def __init__(self, path: str | Path, outcome: Outcome | None = None) -> None:
        self.folder = RunFolder.open(Path(path))
        self.outcome = outcome

    @property
    def path(self) -> Path:
        """Where the run is."""
        return self.folder.path

    @property
    def config(self) -> Any:
        """The resolved configuration."""
        return self.folder.config(ALGORITHMS)

    @property
    def history(self) -> list[Row]:
        """The journal, a row per generation."""
        return self.folder.rows()

    @property
    def best_return(self) -> float | None:
        """The best centre return so far, a mean of the centre's episodes."""
        returns = [row["center_return"] for row in self.history if row["center_return"] is not None]
        return max(returns, default=None)

    @property
    def status(self) -> str:
        """running, finished, interrupted, failed or crashed; with the reason where there is one."""
        return self.folder.status()

    def policy(self, checkpoint: str | int = "best") -> Policy:
        """The policy of a checkpoint: "best", "latest" or a generation."""
        return load(self.path, checkpoint)


@dataclass(frozen=True)
class Callbacks:
    """What a caller of `train` or `resume` wants to be told."""

    on_generation: Callable[[Row], Stop] | None = None
    on_checkpoint: Callable[[Checkpoint], Stop] | None = None
    on_stop: Callable[[Run], None] | None = None

    def __bool__(self) -> bool:
        return any((self.on_generation, self.on_checkpoint, self.on_stop))


def configure(
    env: EnvironmentLike | None,
    options: Mapping[str, Any],
    *,
    algo: str | None = None,
    preset: str | None = "auto",
    config: str | Mapping[str, Any] | None = None,
) -> tuple[Any, Environment, list[str]]:
    """The configuration of a request, its environment, and notices about what was chosen. Raises UsageError."""
    given = {} if config is None else read_values(config) if isinstance(config, str) else dict(config)
    algo, env, given, notices = settle_request(algo, env, preset, given)
    environment, said = resolve(env) if isinstance(env, str) else (with_factory(env), [])
    notices += said
    chosen = _preset(preset, environment.name, algo)
    base = {} if chosen is None else chosen.options
    if chosen is not None:
        notices.append(f"preset {chosen.name}: {chosen.about}")
    file, translated = translate(given, base.get("sigma"))
    named = {"env": environment.name, "algo": algo}
    asked = {**file, **options}
    if asked.get("goal") is not None and "patience" not in asked:  # a preset's patience belongs to the preset's goal
        raise UsageError(f"goal is {asked['goal']}, given without patience; give both, as --goal 475 --patience 5")
    refuse_others(algo, asked)
    result = build(ALGORITHMS[algo], base, file, options, named)
    environment = replace(environment, **environment_options(result))
    return result, environment, notices + translated


def _preset(name: str | None, env: str, algo: str) -> presets.Preset | None:
    if name is None or name == "none":
        return None
    return presets.for_environment(env, algo) if name == "auto" else presets.find(name, algo)


def train(
    env: EnvironmentLike | None = None,
    *,
    algo: str | None = None,
    preset: str | None = "auto",
    config: str | Mapping[str, Any] | None = None,
    observer: Observer | None = None,
    on_generation: Callable[[Row], Stop] | None = None,
    on_checkpoint: Callable[[Checkpoint], Stop] | None = None,
    on_stop: Callable[[Run], None] | None = None,
    **options: Any,
) -> Run:
    """Train a policy on an environment (a Gymnasium id, `module:name`, or a callable that makes one).

    Options are those of `esker train --help`, with underscores. Without `algo` it is what the preset or the configuration
    says, else es. `on_generation` sees every row of the journal,
    `on_checkpoint` every snapshot written; either may answer True, or a text that says why, to stop. `on_stop` sees the
    run when it has ended, however it did. What is wrong with the request raises UsageError, what fails under way RunError.
    """
    resolved, environment, notices = configure(env, options, algo=algo, preset=preset, config=config)
    observer = observer or observer_for(Console(), resolved.quiet)
    if not isinstance(resolved, ESConfig):
        callbacks = Callbacks(on_generation, on_checkpoint, on_stop)
        return _train_hybrid(resolved, environment, observer, notices, callbacks)
    notices += connect_engine(resolved)
    with tried(environment, resolved.step_timeout) as probe:
        about = describe(probe)
        resolved, said = choose_vectorizer(resolved, environment, probe)
        if not resolved.fresh_environments and resolved.vectorizer == "gymnasium" and not reset_is_exact(probe):
            notices.append("episodes do not repeat from their seed on a used environment: --fresh-environments mends that")
        task = build_task(resolved, environment, about)
        if getattr(task.network, "normalized", False):
            task = task.with_reference(collect_reference(probe, resolved.reference_frames, resolved.seed))
    notices += said + network_notices(task)
    state, table = build_state(resolved, task)
    if resolved.init_from is not None:
        notices.append(warm_start(state, resolved.init_from))
    path = Path(resolved.run_dir) if resolved.run_dir else default_path(environment.name, resolved.algo, resolved.seed)
    resolved = replace(resolved, run_dir=None)  # a run folder can be moved: it does not name itself
    folder = RunFolder.create(path, resolved, about)
    folder.lock()
    folder.checkpoint(state.snapshot(), latest=True)
    callbacks = Callbacks(on_generation, on_checkpoint, on_stop)
    if not callbacks and _has_coordinator(resolved):
        return _watch(folder, environment, observer, notices)
    return _follow(folder, state, state.task, table, observer, notices, callbacks)


def _train_hybrid(
    config: Any, environment: Environment, observer: Observer, notices: list[str], callbacks: Callbacks
) -> Run:
    """Train with gradients: no noise table, no vectoriser, generations committed as snapshots."""
    with tried(environment, config.step_timeout) as probe:
        about = describe(probe)
        if not config.fresh_environments and not reset_is_exact(probe):
            notices.append("episodes do not repeat from their seed on a used environment: --fresh-environments mends that")
    state = hybrids.begin(config, environment, about)
    path = Path(config.run_dir) if config.run_dir else default_path(environment.name, config.algo, config.seed)
    folder = RunFolder.create(path, replace(config, run_dir=None), about)
    folder.lock()
    folder.checkpoint(state.snapshot(), latest=True)
    return _follow(folder, state, state.task, None, observer, notices, callbacks, hybrids.opener(folder, state))


def resume(
    run_dir: str | Path,
    *,
    env: Callable[..., Env] | None = None,
    observer: Observer | None = None,
    on_generation: Callable[[Row], Stop] | None = None,
    on_checkpoint: Callable[[Checkpoint], Stop] | None = None,
    on_stop: Callable[[Run], None] | None = None,
    **changes: Any,
) -> Run:
    """Continue a run, bit-identical to never having stopped; stop conditions and engine options may be changed.

    `env` is needed only where the run was started with a callable that no worker can import.
    """
    folder = RunFolder.open(Path(run_dir))
    for name in changes:
        if name not in RESUMABLE:
            raise UsageError(
                f"{name} cannot be changed on resume, since the result would not be that run's; start a new one"
            )
    folder.lock()
    before = folder.config(ALGORITHMS)
    config = build(type(before), _known(before, changes), changes)
    observer = observer or observer_for(Console(), config.quiet)
    environment = environment_of(config, env)
    notices = connect_engine(config) if isinstance(config, ESConfig) else []
    with tried(environment, config.step_timeout) as probe:
        notices += check_fingerprint(folder, probe, config.inexact)
    if changes:
        folder.config_file.write_text(to_toml(config))
    callbacks = Callbacks(on_generation, on_checkpoint, on_stop)
    if not isinstance(config, ESConfig):
        state = hybrids.begin(config, environment, folder.about())
        notices += hybrids.catch_up(folder, state)
        return _follow(folder, state, state.task, None, observer, notices, callbacks, hybrids.opener(folder, state))
    if not callbacks and _has_coordinator(config):
        return _watch(folder, environment, observer, notices)
    task = build_task(config, environment, folder.about())
    state, table = build_state(config, task)
    notices += catch_up(folder, state)
    return _follow(folder, state, state.task, table, observer, notices, callbacks)


def _known(config: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A run's options as it left them; coming home from a cluster, without those that only a cluster has."""
    left = CLUSTER_OPTIONS if changes.get("engine") == "local" else ()
    return {name: value for name, value in vars(config).items() if name not in left}


def environment_of(config: Any, factory: Callable[..., Env] | None = None) -> Environment:
    """The environment of a resolved configuration."""
    options = environment_options(config)
    if factory is not None:
        return with_factory(factory, **options)
    if config.env.startswith("__main__:") or "<" in config.env:
        raise UsageError(f"the environment {config.env!r} was a callable; pass it again as esker.resume(run_dir, env=…)")
    return resolve(config.env, **options)[0]


def _follow(
    folder: RunFolder,
    state: Any,
    task: Any,
    table: Any,
    observer: Observer,
    notices: list[str],
    callbacks: Callbacks,
    make_engine: Callable[[], Any] | None = None,
) -> Run:
    """Run the loop and leave the folder in order, however it ends."""
    config = state.config
    observer = with_backends(observer, config.log)
    wishes: list[str] = []

    def wish(answer: Stop) -> None:
        if answer:
            wishes.append(answer if isinstance(answer, str) else "stopped by a callback")

    def saved(checkpoint: Checkpoint) -> None:
        if callbacks.on_checkpoint:
            wish(callbacks.on_checkpoint(checkpoint))

    def seen(row: Row, returns: Returns | None = None) -> str | None:
        observer.generation(row, returns)
        if callbacks.on_generation:
            wish(callbacks.on_generation(row))
        return wishes[0] if wishes else None

    folder.on_checkpoint = saved
    observer.begin(config, folder, folder.rows())
    for text in notices:
        observer.note(text)
    folder.write_status("running")
    status, outcome = "failed", None
    try:
        opened = contextlib.closing(make_engine()) if make_engine else _engine(folder, task, table, config, observer)
        with _terminate_as_interrupt(), opened as engine:
            loop: Callable[..., Outcome] = train_loop if isinstance(config, ESConfig) else hybrids.train
            outcome = loop(folder, state, engine, seen)
        status = f"finished: {outcome.reason}"
    except KeyboardInterrupt:
        status = "interrupted"
        raise Interrupted(folder) from None
    except OSError as error:
        raise RunError(f"{error.strerror or error}; continue with: esker resume {folder.path}") from error
    except RunError as error:
        raise RunError(f"{error}\nnothing committed is lost; continue with: esker resume {folder.path}") from error
    finally:
        try:
            _leave(folder, state, status)
        finally:
            if table is not None:
                table.close()
            observer.end(status)
        if callbacks.on_stop:
            callbacks.on_stop(Run(folder.path, outcome))
    return Run(folder.path, outcome)


def connect_engine(config: ESConfig) -> list[str]:
    """Join or start the cluster of a Ray engine, before anything is written. Answers notices; raises UsageError."""
    if config.engine == "local":
        return []
    from esker.cluster.connect import connect

    return connect(config)


def _has_coordinator(config: ESConfig) -> bool:
    """A cluster that outlives this process gets a coordinator that does too; a callback keeps the loop in here."""
    if config.engine == "local":
        return False
    from esker.cluster.connect import is_own

    return not is_own()


def _watch(folder: RunFolder, environment: Environment, observer: Observer, notices: list[str]) -> Run:
    """Let a coordinator on the cluster run the loop, and watch it. Ctrl-C stops the run; our death does not."""
    from esker.cluster.submit import run_on_cluster

    folder.unlock()
    try:
        reason = run_on_cluster(folder, environment, observer, notices)
    except KeyboardInterrupt:
        raise Interrupted(folder) from None
    return Run(folder.path, Outcome(reason, reason.startswith("goal reached")))


def _engine(
    folder: RunFolder, task: Any, table: Any, config: ESConfig, observer: Observer
) -> contextlib.AbstractContextManager[Engine]:
    if config.engine == "ray":
        return contextlib.closing(ray_engine(config, task, folder.about()["fingerprint"], observer.note))
    return open_engine(task, config.workers, table, config.step_timeout)


def _leave(folder: RunFolder, state: Any, status: str) -> None:
    """Save and unlock, whatever goes wrong on the way."""
    try:
        with contextlib.suppress(OSError):  # a full disk: the facts are safe, and they suffice
            folder.write_status(status)
            folder.checkpoint(state.snapshot(), latest=True)
            folder.prune(state.config.keep)
    finally:
        folder.unlock()


@contextlib.contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM end training as Ctrl-C does: saved, then out."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not in the main thread: the caller handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class Trained:
    """A snapshot with what it needs to act: taken from a run, or from a checkpoint folder on its own."""

    config: Any
    about: dict[str, Any]
    snapshot: Snapshot
    notices: list[str]


def open_trained(path: str | Path, checkpoint: str | int = "best") -> Trained:
    """A checkpoint of a run folder, or the one that a bare checkpoint folder holds. Wrong requests raise UsageError."""
    path = Path(path)
    if not is_checkpoint(path):
        folder = RunFolder.open(path)
        return Trained(folder.config(ALGORITHMS), folder.about(), *find_snapshot(folder, checkpoint))
    try:
        snapshot = checkpoints.read(path)
    except DamagedCheckpoint as error:
        raise UsageError(f"checkpoint {error}; the run it came from can recompute it from its facts") from error
    if str(checkpoint) not in ("best", "latest", str(snapshot.generation)):
        raise UsageError(f"checkpoint is {checkpoint!r}, and {str(path)!r} holds only generation {snapshot.generation}")
    home = RunFolder(path if (path / "config.toml").is_file() else path.resolve().parent.parent)
    if not home.config_file.is_file():
        raise UsageError(f"{str(path)!r} has no config.toml beside it; copy config.toml and about.json from its run")
    return Trained(home.config(ALGORITHMS), home.about(), snapshot, [])


def find_snapshot(folder: RunFolder, checkpoint: str | int) -> tuple[Snapshot, list[str]]:
    """A run's snapshot, replayed from facts where none is left or it is damaged. Unknown ones raise UsageError."""
    if not isinstance(folder.config(ALGORITHMS), ESConfig):
        return hybrids.find_snapshot(folder, checkpoint)
    committed = sum(1 for _ in folder.facts())
    if not committed and not checkpoints.generations(folder.checkpoints):
        raise UsageError(f"run {str(folder.path)!r} has no checkpoint yet; continue it with: esker resume {folder.path}")
    if checkpoint in ("best", "latest"):
        generation = checkpoints.pointed(folder.best_file if checkpoint == "best" else folder.latest_file)
        generation = committed if generation is None else generation
    elif str(checkpoint).isdigit():
        generation = int(checkpoint)
    else:
        raise UsageError(f"checkpoint is {checkpoint!r}; expected best, latest or a generation")
    if generation > committed:
        kept = ", ".join(str(g) for g in checkpoints.generations(folder.checkpoints))
        raise UsageError(f"generation {generation} does not exist; this run has 0 to {committed} (snapshots: {kept})")
    snapshot, damaged = folder.newest(generation)
    if snapshot is not None and snapshot.generation == generation:
        return snapshot, damaged
    config = folder.config(ALGORITHMS)
    task = build_task(config, Environment(config.env), folder.about())
    state, table = build_state(config, task)
    rewind(folder, state, generation)
    if table is not None:
        table.close()
    return state.snapshot(), [*damaged, f"generation {generation} was recomputed from the facts"]


def load(run_dir: str | Path, checkpoint: str | int = "best") -> Policy:
    """The policy of a run: `esker.load(run).act(observation)`. Needs neither the environment nor the training machine."""
    return policy_of(open_trained(run_dir, checkpoint))


def policy_of(trained: Trained) -> Policy:
    """The policy that acts with a snapshot."""
    config, about, snapshot = trained.config, trained.about, trained.snapshot
    task = build_task(config, Environment(config.env), about).with_reference(snapshot.arrays.get("reference"))
    normalizer = _normalizer(snapshot) if task.normalize else None
    space = spaces.from_json(about["observation_space"])
    return Policy(task.network, task.head, snapshot.arrays["center"], normalizer, space)


def evaluate(
    run_dir: str | Path,
    *,
    episodes: int = 100,
    checkpoint: str | int = "best",
    seed: int = 0,
    workers: int | None = None,
    env: Callable[..., Env] | None = None,
) -> tuple[Evaluation, list[str]]:
    """Evaluate a checkpoint over seeded episodes; answers the returns, and notices about what had to be mended."""
    if episodes < 1:
        raise UsageError(f"episodes is {episodes}; expected at least 1")
    trained = open_trained(run_dir, checkpoint)
    config, snapshot = trained.config, trained.snapshot
    environment = environment_of(config, env)
    task = replace(
        build_task(config, environment, trained.about).with_reference(snapshot.arrays.get("reference")),
        vectorizer="gymnasium",  # whoever trained it, evaluation repeats from its seed
        seed=seed,
        center_episodes=episodes,
        center_purpose=Purpose.EVALUATION,
    )
    normalizer = _normalizer(snapshot) if task.normalize else None

    def refuse(result: Any) -> None:
        raise RunError(f"{task.describe(0, result.item)}: {result.error}\n{result.trace}".rstrip())

    plan = Plan(0, center=episodes, refuse=refuse)
    with open_engine(task, workers) as engine:
        engine.evaluate(Job(0, snapshot.arrays["center"], 0.0, normalizer), plan)
    results = plan.of_center()
    return Evaluation([r.total for r in results], [r.length for r in results], snapshot.generation), trained.notices


def _normalizer(snapshot: Snapshot) -> Any:
    arrays = snapshot.arrays
    return Statistics(
        snapshot.values["statistics_count"], arrays["statistics.total"], arrays["statistics.squares"]
    ).normalizer()
