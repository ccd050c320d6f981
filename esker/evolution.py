"""`esker.Evolution`: evolve any torch module, tensor or list of tensors by any reward."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Unpack

from esker.algorithms.algorithm import Engine
from esker.algorithms.loop import Outcome
from esker.algorithms.observer import Observer, Row
from esker.cluster import connect
from esker.config.build import build, default_of
from esker.config.evolution import EVOLUTION_RESUMABLE, EvolutionConfig
from esker.config.keywords import EvolutionOptions
from esker.config.legacy import rename
from esker.config.strategies import own_defaults
from esker.engines.remote.server import WorkServer
from esker.errors import RunError, UsageError, named_line
from esker.functions.algorithm import FUNCTION, begin_about, start
from esker.functions.forms import by_workers, check_form, check_served
from esker.functions.parameters import Filter, Subject
from esker.functions.problem import Problem, made
from esker.functions.reward import BadReward, Function, number
from esker.functions.saving import check_path, save
from esker.functions.state import FunctionEvolution
from esker.functions.task import Caller, Functions, generators_kept, seed_generators
from esker.logs.backends import Also, find_logger, with_backends
from esker.logs.lines import Lines, describe_row
from esker.noise.address import Purpose, episode_seed
from esker.runs import session
from esker.runs.folder import RunFolder
from esker.runs.memory import MemoryRun
from esker.runs.recovery import catch_up
from esker.runs.runner import Callbacks, Interrupted, reason_of, run
from esker.runs.session import Session
from esker.runs.trust import OF_CLUSTER, Trust, record_change
from esker.strategies.strategy import Strategy

NAMED = ("env", "model", "algo", "generations")  # stored options that follow from what `Evolution` and `run` are given


class Evolution:
    """Evolve a model by a reward (higher is better): `Evolution(model, reward, population=50, …).run(200)`.

    `model` is what is evolved, or a function that makes it. `reward(model) -> float` may also take `weights=` (the
    parameters as a list) and `seed=` (a number that belongs to this evaluation). `reward_batch(members) -> (n,) tensor`
    evaluates many at once instead. `params` chooses which parameters move; `test_kwargs` are passed to one more call at
    every report, in this process; `save_path` is written at every report; `on_iteration` sees every row of the history
    and may return True, or a text that says why, to stop. `observer` sees rows and notes beside the printed lines (in
    their place where it has `is_display = True`). With `server` the processes that connect to it evaluate members as
    they like, and there is no reward here. All other options are the fields of
    `esker.config.evolution.EvolutionConfig`. What is wrong with the request raises UsageError, what fails under way
    RunError; either way the model is left with the best (or last) parameters found.
    """

    def __init__(
        self,
        model: Subject | Callable[[], Subject],
        reward: Function | None = None,
        *,
        reward_batch: Function | None = None,
        params: Filter | None = None,
        test_kwargs: Mapping[str, Any] | None = None,
        save_path: str | Path | None = None,
        on_iteration: Callable[[Row], bool | str | None] | None = None,
        observer: Observer | None = None,
        server: WorkServer | None = None,
        _folder: RunFolder | None = None,
        **options: Unpack[EvolutionOptions],
    ) -> None:
        given, renamed = rename(options)
        tests = test_kwargs is not None
        if server is not None:
            given = check_served(reward, reward_batch, given, tests)
        check_form(reward if server is None else by_workers, reward_batch, given, tests)
        self.model, maker = made(model)
        problem = Problem(self.model, reward, reward_batch, params, test_kwargs or {}, server, maker)
        self.config = build(
            EvolutionConfig, own_defaults(given.get("strategy")), given, problem.names(), new=_folder is None
        )
        self.save_path = None if save_path is None else Path(save_path)
        if self.save_path is not None:
            check_path(self.save_path)
        self.on_iteration = on_iteration
        self.history: list[Row] = []
        self.outcome: Outcome | None = None
        self.notices: list[str] = []  # what the user should know: what was repaired on resume, what falls back
        self.tested: float | None = None  # by the test call of the report after the last generation, if there was one
        self._test_kwargs = test_kwargs
        self._tester: Caller | None = None
        self._report_every: int | None = None
        self._display = Lines(self._seen, self.notices, observer, self.config.quiet)
        self._session = self._begin(problem) if _folder is None else self._continue(_folder, problem)
        for text in renamed + self._session.notices:
            self.note(text)
        self._session.notices = []

    @classmethod
    def resume(
        cls,
        run_dir: str | Path,
        model: Subject | Callable[[], Subject],
        reward: Function | None = None,
        trust: Trust = False,
        **arguments: Any,
    ) -> Evolution:
        """Continue a run folder, bit-identical to never having stopped: nothing is evaluated again.

        The values of `model` that move do not matter; what does not move must be as in the run. The other arguments are
        those of `Evolution`: what is not stored (`reward_batch`, `params`, …) is given anew, stop conditions, loggers and
        workers may be changed, the rest may not. A strategy or logger of another machine's run is imported only if `trust`
        names its module.
        """
        folder = RunFolder.open(Path(run_dir))
        known = {f.name: f for f in fields(EvolutionConfig)}
        for name in arguments.keys() & known.keys():
            if name not in EVOLUTION_RESUMABLE:
                raise UsageError(f"{name} cannot be changed on resume, because the result would differ from that run's")
        folder.check_trust(trust, frozenset({"env", "model"} | arguments.keys()) | OF_CLUSTER)
        stored = vars(folder.config(lambda name: EvolutionConfig))
        fixed = own_defaults(stored["strategy"])
        options = {
            name: value
            for name, value in stored.items()
            if name not in NAMED and (name in fixed or value != default_of(known[name]))
        }
        return cls(model, reward, _folder=folder, **{**options, **arguments})

    @property
    def iteration(self) -> int:
        """How many generations have been made."""
        return self._state.generation

    @property
    def strategy(self) -> Strategy:
        """The strategy that moves the centre."""
        return self._state.strategy

    @property
    def best_reward(self) -> float | None:
        """The best reward of a centre so far, a mean of its evaluations."""
        return self._state.progress.best_return

    @property
    def _state(self) -> FunctionEvolution:
        state = self._session.state
        assert isinstance(state, FunctionEvolution)
        return state

    def run(self, iterations: int, report_every: int | None = 10) -> Any:
        """Run N more generations, or stop at the goal; returns the model, which holds the parameters found."""
        for name, value in (("iterations", iterations), ("report_every", report_every)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise UsageError(f"{name} is {value!r}; expected a whole number of at least 1")
        self._state.config = replace(self.config, generations=self.iteration + iterations)
        self._report_every = report_every
        self.outcome = None
        try:
            self.outcome = self._run()
        finally:
            self._leave(finished=self.outcome is not None)
        if report_every is not None and self.history and self.iteration % report_every:
            self._report(self.history[-1])
        return self.model

    def _run(self) -> Outcome:
        """Hand the session to the runner that all runs have: here, or in a coordinator on the cluster."""
        folder = self._session.folder
        if self.config.engine == "ray":
            for text in connect.connect(self.config, self.config.workers):
                self.note(text)
        shared = self.config.engine == "ray" and isinstance(folder, RunFolder) and not connect.is_own()
        if shared and self.on_iteration is None and self._test_kwargs is None and self.save_path is None:
            from esker.cluster.functions import pack_problem

            if (packed := pack_problem(self._session.environment, self._state, self.note)) is not None:
                return self._run_elsewhere(packed)
        return self._run_here(shared)

    def _run_here(self, shared: bool) -> Outcome:
        begun, folder, observer = self._session, self._session.folder, self._display
        shown = None
        if shared:
            from esker.cluster.board import Published

            assert isinstance(folder, RunFolder)
            shown = Published(folder)

        def opened() -> Engine:
            engine = begun.open(observer)
            if shown is not None:
                shown.engine = engine
            return engine

        def wishes(row: Row) -> str | None:
            stop = None if self.on_iteration is None else self.on_iteration(row)
            if shown is not None and shown.stopping:
                return "stopped by esker stop"
            return reason_of(stop, "on_iteration")

        folder.lock()
        folder.write_config(replace(self._state.config, run_dir=None))
        watching = with_backends(observer if shown is None else Also(observer, shown), self.config.log)
        return run(begun, watching, Callbacks(wishes), opened)

    def _run_elsewhere(self, packed: bytes) -> Outcome:
        """Let a coordinator on the cluster run the loop, and watch it. Ctrl-C stops the run; our death does not."""
        from esker.cluster.submit import run_on_cluster

        folder = self._session.folder
        assert isinstance(folder, RunFolder)
        folder.write_config(replace(self._state.config, run_dir=None))
        try:
            reason = run_on_cluster(folder, packed, self._display, [])
        except BaseException as error:
            with contextlib.suppress(UsageError):  # a coordinator that is lost may hold the folder yet
                self._catch_up(folder)
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(self._session.advice()) from None
            raise
        self._catch_up(folder)
        return Outcome(reason, reason.startswith("goal reached"))

    def _catch_up(self, folder: RunFolder) -> None:
        """Go to where a coordinator left the run."""
        folder.lock()
        try:
            for text in catch_up(FUNCTION, folder, self._state):
                self.note(text)
        finally:
            folder.unlock()
        self.history = folder.rows()

    def _begin(self, problem: Problem) -> Session:
        """A new run, in a new folder or in memory."""
        path = None if self.config.run_dir is None else Path(self.config.run_dir)
        for name in self.config.log:
            find_logger(name)
            if path is None:
                raise UsageError(f"log is {name!r}, and loggers write into a run folder; add run_dir='runs/my-run'")
        about = {} if path is None else begin_about(self.config, problem)
        state = start(self.config, problem, about)
        if path is None:
            return Session(FUNCTION, problem, MemoryRun(), state, state.notices)
        folder = session.create(path, self.config, about, state)
        folder.unlock()
        return Session(FUNCTION, problem, folder, state, state.notices)

    def _continue(self, folder: RunFolder, problem: Problem) -> Session:
        """A run that continues from its folder; the model gets its parameters."""
        folder.lock()
        try:
            begun = session.resume(folder, FUNCTION, self.config, problem, [])
            before = folder.values()
            folder.write_config(self.config)
            record_change(folder.about(), before, folder.values())
        finally:
            folder.unlock()
        self.history = folder.rows()
        begun.state.flat.write(begun.state.final)  # type: ignore[attr-defined]
        return begun

    def note(self, text: str) -> None:
        """Keep a notice, and print it."""
        self._display.note(text)

    def _seen(self, row: Row) -> None:
        """A generation was committed."""
        self.history.append(row)
        self.tested = None
        if self._report_every is not None and (row["generation"] + 1) % self._report_every == 0:
            self._report(row)

    def _report(self, row: Row) -> None:
        """Make the test call, print a line, save the parameters."""
        self.tested = None if self._test_kwargs is None else self._test(self._test_kwargs)
        self._display.print(describe_row(row, self.tested))
        if self.save_path is not None:
            self._state.flat.write(self._state.final)
            self._save(self.save_path)

    def _save(self, path: Path) -> None:
        save(path, self.model)

    def _test(self, test_kwargs: Mapping[str, Any]) -> float:
        """One more call on the centre, in this process."""
        task = self._state.task
        assert isinstance(task, Functions)
        self._tester = self._tester or Caller(task.subject, task.layout, task.call, task.device)
        seed = episode_seed(task.seed, Purpose.EVALUATION, self.iteration)
        with generators_kept(True):
            seed_generators(seed)
            try:
                value = self._tester(self.strategy.center.numpy(), seed, test_kwargs)
                return number(value, self._tester.device)
            except BadReward as error:
                raise RunError(f"the test call after generation {self.iteration}: {error}") from None
            except (Exception, SystemExit) as error:
                raise RunError(f"the test call after generation {self.iteration}: {named_line(error)}") from error
            finally:
                self._tester.restore()
                self._state.flat.write(self._state.final)

    def _leave(self, finished: bool) -> None:
        """Leave model and save path in order, however the run ended."""
        self._state.flat.write(self._state.final)
        if self.save_path is not None and self.history:
            with contextlib.suppress(*() if finished else (RunError,)):  # what went wrong first is what to say
                self._save(self.save_path)
