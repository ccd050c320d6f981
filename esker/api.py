"""The Python API: train and resume, and the run that they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import gymnasium as gym
from rich.console import Console

from esker.algorithms import registry
from esker.algorithms.device import is_one_batch
from esker.algorithms.loop import Outcome
from esker.algorithms.observer import Observer, Row
from esker.cluster import connect
from esker.config.build import build
from esker.config.keywords import ResumeChanges, TrainOptions
from esker.config.legacy import modernize, whole_goal
from esker.config.options import CLUSTER_OPTIONS
from esker.errors import UsageError
from esker.logs import html
from esker.logs.backends import Also, find_logger, with_backends
from esker.logs.describe import describe_run
from esker.logs.observers import observer_for
from esker.logs.together import Part, Together
from esker.policies.custom import network_name
from esker.runs import loading, runner, session
from esker.runs.evaluation import Evaluation
from esker.runs.folder import Checkpoint, RunFolder
from esker.runs.loading import environment_of
from esker.runs.repair import repair_texts
from esker.runs.request import EnvironmentLike, configure
from esker.runs.runner import Callbacks, Interrupted, Stop
from esker.runs.session import Session
from esker.runs.trust import OF_CLUSTER, Trust, record_change, with_own
from esker.tools.card import Card, write_card
from esker.tools.compare import compare
from esker.tools.inline import Picture, Video
from esker.tools.render import Options, render
from esker.worlds.environments import Env
from esker.worlds.instances import from_instance

LIMITS = {"generations", "steps", "training_steps", "wall_time"}


class Run(loading.Run):
    """A run: `path`, `config`, `history`, `best_return`, `status`, `policy()`, and what `esker` commands do to runs."""

    def plot(self, output: str | Path | None = None, **options: Any) -> Picture:
        """The learning curve, shown in notebooks; options are those of `esker.logs.plot.Figure`, as x="time"."""
        return compare([self]).plot(output, **options)

    def report(self, output: str | Path | None = None) -> Path:
        """Write the page that `esker report` writes, by default inside the run; returns its path."""
        return compare([self]).report(output or self.path / "report.html")

    def render(
        self, checkpoint: str | int = "best", output: str | Path | None = None, *, trust: Trust = False, **options: Any
    ) -> Video:
        """Record episodes, shown in notebooks; `episodes`, `max_steps`, `seed`, `size`, `fps` as for `esker render`."""
        target = None if output is None else Path(output)
        found = render(self.path, str(checkpoint), Options(**options), target, trust, self.env)
        return Video(found.files[0], found.checkpoint, found.returns)

    def evaluate(self, episodes: int = 100, checkpoint: str | int = "best", **options: Any) -> Evaluation:
        """Evaluate a checkpoint over seeded episodes; options are those of `esker.evaluate`: seed, workers, env, trust."""
        options.setdefault("env", self.env)
        return loading.evaluate(self.path, episodes=episodes, checkpoint=checkpoint, **options).evaluation

    def export(
        self,
        output: str | Path | None = None,
        formats: Sequence[str] = ("state-dict", "torchscript", "torch-export", "onnx"),
        checkpoint: str | int = "best",
    ) -> list[Path]:
        """Write the policy for use without esker; returns the files."""
        from esker.tools.export import export  # torch's exporters are slow to import

        done, _ = export(self.path, str(checkpoint), formats, None if output is None else Path(output))
        return [one.path for one in done]

    def card(self, output: str | Path | None = None, checkpoint: str | int = "best", episodes: int = 100) -> Card:
        """Write a model folder ready for a hub."""
        return write_card(self.path, str(checkpoint), episodes, None if output is None else Path(output))

    def resume(self, **changes: Unpack[ResumeChanges]) -> Run:
        """Continue the run, as `esker.resume` does; returns it."""
        return resume(self.path, env=self.env, **changes)

    def __repr__(self) -> str:
        texts = [f"{name} {text}" if name.startswith("best") else text for name, text in describe_run(self)]
        return f"Run({str(self.path)!r}: {'; '.join(texts)})"

    def _repr_html_(self) -> str:
        returns = [row["center_return"] for row in self.folder.judged_rows()]
        return html.facts(describe_run(self), str(self.path)) + html.curve(returns, "centre return")


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
    foreign: Mapping[str, Any] | None = None,
    **options: Unpack[TrainOptions],
) -> Run:
    """Train a policy on an environment: a Gymnasium id, `module:name`, a class or function that makes one, or an instance.

    Options are those of `esker train --help`, with underscores. Without `algo` it is the preset's or the configuration's,
    else es. `on_generation` sees every row of the journal, `on_checkpoint` every snapshot written; either may return True,
    or a text that says why, to stop. `on_stop` sees the run when it has ended, however it did. `observer` sees rows, notes
    and members' returns besides the console (instead of it where it has `is_display = True`). `trust` names modules that a
    run given as `init_from` may import; `foreign` holds options under RLlib's or AES-RL's names, as `config` may, and takes
    precedence over it.
    A wrong request raises UsageError, a failure while running RunError.
    """
    request = configure(env, options, algo=algo, preset=preset, config=config, foreign=foreign)
    for name in request.config.log:  # found before anything is written
        find_logger(name)
    request.notices.extend(connect.join_engine(request.config, request.algorithm.workers(request.config)))
    callbacks = Callbacks(on_generation, on_checkpoint, _told(on_stop))
    trusted = with_own(trust, request.config)
    begun = session.start(request, elsewhere=_elsewhere(request.config, callbacks), trust=trusted)
    return _run(begun, observer, callbacks)


def resume(
    run_dir: str | Path,
    *,
    env: Callable[..., Env] | Env | None = None,
    network: Any = None,
    observer: Observer | None = None,
    on_generation: Callable[[Row], Stop] | None = None,
    on_checkpoint: Callable[[Checkpoint], Stop] | None = None,
    on_stop: Callable[[Run], None] | None = None,
    trust: Trust = False,
    **changes: Unpack[ResumeChanges],
) -> Run:
    """Continue a run, bit-identical to never having stopped; stop conditions and engine options may be changed.

    `env` and `network` are needed only where the run was started with objects that no worker can import. A goal that was
    reached does not stop a run whose limits are changed. A run that names code by import path is refused unless it was
    made on this machine or `trust` allows it: a list of modules, or True for all.
    """
    folder, config, stepped, environment, notices = _continued(run_dir, env, network, trust, changes)
    callbacks = Callbacks(on_generation, on_checkpoint, _told(on_stop))
    if _elsewhere(config, callbacks):
        return _watch(folder, environment, _observer(observer, config), notices)
    algorithm = registry.find(folder.algo)
    return _run(session.resume(folder, algorithm, stepped, environment, notices), observer, callbacks)


def train_seeds(
    env: EnvironmentLike | None,
    seeds: Sequence[int],
    *,
    algo: str | None = None,
    preset: str | None = "auto",
    config: str | Mapping[str, Any] | None = None,
    trust: Trust = False,
    foreign: Mapping[str, Any] | None = None,
    **options: Unpack[TrainOptions],
) -> list[Run]:
    """Train several seeds as one batch on a device (`device="cuda"`), each a run of its own; returns them in this order.

    Arguments are those of `train`. `run_dir` is the folder of their folders; `slots` are those of all seeds together.
    A wrong request raises UsageError; seeds that fail raise RunError when the others have ended.
    """
    parent, begun = options.get("run_dir"), []
    for seed in dict.fromkeys(seeds):
        own: Any = {**options, "seed": seed} | ({} if parent is None else {"run_dir": str(Path(parent) / f"s{seed}")})
        request = configure(env, own, algo=algo, preset=preset, config=config, foreign=foreign)
        if not is_one_batch(request.config, request.environment):
            raise UsageError("train_seeds is for worlds on a device, as device='cuda'; `esker train --seeds` runs others")
        begun.append(session.start(request, trust=with_own(trust, request.config)))
    return _run_together(begun)


def resume_together(run_dirs: Sequence[str | Path], *, trust: Trust = False, **changes: Unpack[ResumeChanges]) -> list[Run]:
    """Continue runs that began with `train_seeds` as one batch on their device; arguments are those of `resume`."""
    begun = []
    for run_dir in run_dirs:
        folder, config, stepped, environment, notices = _continued(run_dir, None, None, trust, changes)
        if not getattr(config, "worlds_on_device", False):
            raise UsageError(f"{run_dir} has no worlds on a device; resume such runs one by one")
        begun.append(session.resume(folder, registry.find(folder.algo), stepped, environment, notices))
    same = [{**vars(each.state.config), "seed": None, "run_dir": None} for each in begun]
    for each, config in zip(begun, same, strict=True):
        if config != same[0]:
            raise UsageError(
                f"{each.folder.path} differs from {begun[0].folder.path} in more than its seed; resume it alone"
            )
    return _run_together(begun)


def _run_together(begun: Sequence[Session]) -> list[Run]:
    """Run sessions as one batch on their device."""
    from esker.runs.together import run_together  # torch is slow to import

    config = begun[0].state.config
    whole = Together(Console(markup=False, emoji=False), config.quiet)
    outcomes = run_together(begun, lambda each: with_backends(Part(whole), each.state.config.log), whole.note)
    return [Run(each.folder.path, outcome) for each, outcome in zip(begun, outcomes, strict=True)]


def _continued(
    run_dir: str | Path, env: Any, network: Any, trust: Trust, changes: Mapping[str, Any]
) -> tuple[RunFolder, Any, Any, Any, list[str]]:
    """A run to be resumed, locked and repaired: its folder, configuration, what is stepped here, environment, notices."""
    folder = RunFolder.open(Path(run_dir))
    env = _again(folder, env, network)
    renamed, old_names = modernize(changes)
    asked, notices = _beyond_goal(folder, whole_goal(renamed))
    given = frozenset(asked) | (frozenset() if env is None else {"env"}) | (frozenset() if network is None else {"network"})
    local = asked.get("engine", folder.values().get("engine", "local")) == "local"
    folder.check_trust(trust, given | (OF_CLUSTER if local else frozenset()))
    for name in asked:
        if name not in registry.find(folder.algo).resumable:
            raise UsageError(
                f"{name} cannot be changed on resume, because the result would differ from that run's; start a new one"
            )
    folder.lock()
    repaired = repair_texts(folder)
    algorithm, before = registry.find(folder.algo), folder.config(registry.options_of)
    config = build(type(before), _known(before, asked), asked)
    for name in config.log if "log" in asked else ():
        find_logger(name)
    environment = algorithm.find(config, folder.about()) if algorithm.find else environment_of(config, env)
    notices += [*old_names, *repaired, *connect.join_engine(config, algorithm.workers(config))]
    stepped, said = session.check_machine(folder, config, environment)
    if asked:
        values = folder.values()
        folder.write_config(config)
        record_change(folder.about(), values, folder.values())
    return folder, config, stepped, environment, notices + said


def _again(folder: RunFolder, env: Any, network: Any) -> Callable[..., Env] | None:
    """The objects that a run was started with, given again. Another network raises UsageError."""
    if isinstance(env, gym.Env):
        env = from_instance(env)[0]
    if network is not None and network_name(network) != folder.values().get("network"):
        raise UsageError(f"network is {network_name(network)!r}, and this run's is {folder.values().get('network')!r}")
    return None if isinstance(env, str) else env


def _beyond_goal(folder: RunFolder, changes: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Changes that let a run continue after its goal was reached, if its limits are changed and its goal is not."""
    reached = folder.status().startswith("finished: goal reached")
    if not reached or "goal" in changes or not changes.keys() & LIMITS:
        return changes, []
    return {**changes, "goal": None, "patience": None}, ["the goal was reached; training continues without it"]


def _told(on_stop: Callable[[Run], None] | None) -> Callable[[Path, Outcome | None], None] | None:
    """A caller's `on_stop`, which is given the run that `train` returns."""
    return None if on_stop is None else lambda path, outcome: on_stop(Run(path, outcome))


def _known(config: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A run's stored options; off a cluster, without those that only a cluster has."""
    left = CLUSTER_OPTIONS if changes.get("engine") == "local" else ()
    return {name: value for name, value in vars(config).items() if name not in left}


def _elsewhere(config: Any, callbacks: Callbacks) -> bool:
    """A cluster that outlives this process gets a coordinator that does too; a callback keeps the loop in here."""
    return config.engine == "ray" and not callbacks and not connect.is_own()


def _observer(observer: Observer | None, config: Any) -> Observer:
    """What shows a run: the console and the caller's observer; an observer that is a display replaces the console."""
    if getattr(observer, "is_display", False):
        assert observer is not None
        return observer
    console = observer_for(Console(markup=False, emoji=False), config.quiet)
    return console if observer is None else Also(console, observer)


def _run(begun: Session, observer: Observer | None, callbacks: Callbacks) -> Run:
    config = begun.state.config
    watching = _observer(observer, config)
    assert isinstance(begun.folder, RunFolder)
    if _elsewhere(config, callbacks):
        return _watch(begun.folder, begun.environment, watching, begun.notices)
    outcome = runner.run(begun, with_backends(watching, config.log), callbacks)
    return Run(begun.folder.path, outcome, getattr(begun.environment, "factory", None))


def _watch(folder: RunFolder, environment: Any, observer: Observer, notices: list[str]) -> Run:
    """Let a coordinator on the cluster run the loop, and watch it. Ctrl-C stops the run; a killed viewer does not."""
    from esker.cluster.submit import run_on_cluster

    folder.unlock()
    try:
        reason = run_on_cluster(folder, environment, observer, notices)
    except KeyboardInterrupt:
        raise Interrupted(f"continue with: esker resume {folder.path}") from None
    return Run(folder.path, Outcome(reason, reason.startswith("goal reached")))
