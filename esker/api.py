"""The Python API: train and resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from esker import presets
from esker.algorithms import hybrids
from esker.algorithms.loop import Observer, Row, catch_up
from esker.config.build import build, read_values
from esker.config.options import ALGORITHMS, CLUSTER_OPTIONS, RESUMABLE, ESConfig
from esker.config.request import refuse_others, settle_request
from esker.config.rllib import translate
from esker.errors import UsageError
from esker.logs.observers import observer_for
from esker.runs.assembly import (
    build_state,
    build_task,
    check_fingerprint,
    describe,
    environment_options,
    network_notices,
)
from esker.runs.folder import Checkpoint, RunFolder, default_path
from esker.runs.loading import Run, environment_of
from esker.runs.repair import mend_texts
from esker.runs.runner import Callbacks, Stop, connect_engine, follow, has_coordinator, watch
from esker.runs.trust import OF_CLUSTER, Trust, record_change, with_own
from esker.runs.warm_start import warm_start
from esker.worlds.environments import Env, Environment, reset_is_exact, resolve, tried, with_factory
from esker.worlds.reference import collect_reference
from esker.worlds.vectorizers import choose_vectorizer, confirm_vectorizer

EnvironmentLike = str | Callable[..., Env]


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
    try:
        result = build(ALGORITHMS[algo], base, file, options, named)
    except UsageError as error:
        if chosen is None or preset != "auto":
            raise
        build(ALGORITHMS[algo], {}, file, options, named)  # what is wrong by itself says so by itself
        why = f"by preset {chosen.name}, chosen for {chosen.env}; --preset none does without"
        raise UsageError(f"{error} ({why})") from error
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
    trust: Trust = False,
    **options: Any,
) -> Run:
    """Train a policy on an environment (a Gymnasium id, `module:name`, or a callable that makes one).

    Options are those of `esker train --help`, with underscores. Without `algo` it is what the preset or the configuration
    says, else es. `on_generation` sees every row of the journal,
    `on_checkpoint` every snapshot written; either may answer True, or a text that says why, to stop. `on_stop` sees the
    run when it has ended, however it did. `trust` names modules that a run given as `init_from` may import.
    What is wrong with the request raises UsageError, what fails under way RunError.
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
        notices.append(warm_start(state, resolved.init_from, with_own(trust, resolved)))
    path = Path(resolved.run_dir) if resolved.run_dir else default_path(environment.name, resolved.algo, resolved.seed)
    resolved = replace(resolved, run_dir=None)  # a run folder can be moved: it does not name itself
    folder = RunFolder.create(path, resolved, about)
    folder.lock()
    folder.checkpoint(state.snapshot(), latest=True)
    callbacks = Callbacks(on_generation, on_checkpoint, on_stop)
    if not callbacks and has_coordinator(resolved):
        return watch(folder, environment, observer, notices)
    return follow(folder, state, state.task, table, observer, notices, callbacks)


def _train_hybrid(
    config: Any, environment: Environment, observer: Observer, notices: list[str], callbacks: Callbacks
) -> Run:
    """Train with gradients: no noise table, no vectoriser, generations committed as snapshots."""
    notices += connect_engine(config)
    elsewhere = not callbacks and has_coordinator(config)
    with tried(environment, config.step_timeout) as probe:
        about = describe(probe)
        if not config.fresh_environments and not reset_is_exact(probe):
            notices.append("episodes do not repeat from their seed on a used environment: --fresh-environments mends that")
    state = hybrids.begin(replace(config, device="cpu") if elsewhere else config, environment, about)
    path = Path(config.run_dir) if config.run_dir else default_path(environment.name, config.algo, config.seed)
    folder = RunFolder.create(path, replace(config, run_dir=None), about)
    folder.lock()
    folder.checkpoint(state.snapshot(), latest=True)
    if elsewhere:
        return watch(folder, environment, observer, notices)
    opener = hybrids.opener(folder, state, observer.note)
    return follow(folder, state, state.task, None, observer, notices, callbacks, opener)


def resume(
    run_dir: str | Path,
    *,
    env: Callable[..., Env] | None = None,
    observer: Observer | None = None,
    on_generation: Callable[[Row], Stop] | None = None,
    on_checkpoint: Callable[[Checkpoint], Stop] | None = None,
    on_stop: Callable[[Run], None] | None = None,
    trust: Trust = False,
    **changes: Any,
) -> Run:
    """Continue a run, bit-identical to never having stopped; stop conditions and engine options may be changed.

    `env` is needed only where the run was started with a callable that no worker can import. A run that names code by
    import path is refused unless it was made on this machine or `trust` allows it: a list of modules, or True for all.
    """
    folder = RunFolder.open(Path(run_dir))
    for name in changes:
        if name not in RESUMABLE:
            raise UsageError(
                f"{name} cannot be changed on resume, since the result would not be that run's; start a new one"
            )
    given = frozenset(changes) | (frozenset() if env is None else {"env"})
    local = changes.get("engine", folder.values().get("engine", "local")) == "local"
    folder.check_trust(trust, given | (OF_CLUSTER if local else frozenset()))
    folder.lock()
    mended = mend_texts(folder)
    before = folder.config(ALGORITHMS)
    config = build(type(before), _known(before, changes), changes)
    observer = observer or observer_for(Console(), config.quiet)
    environment = environment_of(config, env)
    notices = [*mended, *connect_engine(config)]
    with tried(environment, config.step_timeout) as probe:
        notices += check_fingerprint(folder, probe, config.inexact)
        stepped, said = confirm_vectorizer(config, environment, probe)
    if changes:
        values = folder.values()
        folder.write_config(config)
        record_change(folder.about(), values, folder.values())
    callbacks = Callbacks(on_generation, on_checkpoint, on_stop)
    if not callbacks and has_coordinator(config):
        return watch(folder, environment, observer, notices)
    if not isinstance(config, ESConfig):
        state = hybrids.begin(config, environment, folder.about())
        notices += hybrids.catch_up(folder, state)
        opener = hybrids.opener(folder, state, observer.note)
        return follow(folder, state, state.task, None, observer, notices, callbacks, opener)
    task = build_task(stepped, environment, folder.about())
    state, table = build_state(config, task)
    notices += said + catch_up(folder, state)
    return follow(folder, state, state.task, table, observer, notices, callbacks)


def _known(config: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A run's options as it left them; coming home from a cluster, without those that only a cluster has."""
    left = CLUSTER_OPTIONS if changes.get("engine") == "local" else ()
    return {name: value for name, value in vars(config).items() if name not in left}
