"""`esker.Evolution`: evolve any torch module, tensor or list of tensors by any reward."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Unpack

from esker.algorithms.loop import Outcome, train
from esker.algorithms.observer import Row
from esker.config import other_names
from esker.config.build import build, default_of
from esker.config.evolution import EVOLUTION_RESUMABLE, EvolutionConfig
from esker.config.keywords import EvolutionOptions
from esker.engines.remote.engine import RemoteEngine
from esker.engines.remote.server import WorkServer
from esker.errors import RunError, UsageError
from esker.functions import assembly as parts
from esker.functions.batches import BatchTask
from esker.functions.parameters import Filter, Subject
from esker.functions.reward import BadReward, Function, label, number
from esker.functions.saving import check_path, save
from esker.functions.task import Caller, Functions, generators_kept, seed_generators
from esker.noise.address import Purpose, episode_seed
from esker.noise.choice import open_table
from esker.runs.folder import RunFolder
from esker.runs.memory import MemoryRun
from esker.strategies.strategy import Strategy


class Evolution:
    """Evolve a model by a reward (higher is better): `Evolution(model, reward, population=50, …).run(200)`.

    `reward(model) -> float`; it may also take `weights=` (the parameters as a list) and `seed=` (a number that belongs to
    this evaluation). `reward_batch(members) -> (n,) tensor` evaluates many at once instead. `params` chooses which
    parameters move; `test_kwargs` are passed to one more call at every report, in this process; `save_path` is written at
    every report; `on_iteration` sees every row of the history and may return True, or a text that says why, to stop. With
    `server` the processes that connect to it evaluate members as they like, and there is no reward here. All other
    options are the fields of `esker.config.evolution.EvolutionConfig`. What is wrong with the request raises UsageError,
    what fails under way RunError; either way the model is left with the best (or last) parameters found.
    """

    def __init__(
        self,
        model: Subject,
        reward: Function | None = None,
        *,
        reward_batch: Function | None = None,
        params: Filter | None = None,
        test_kwargs: Mapping[str, Any] | None = None,
        save_path: str | Path | None = None,
        on_iteration: Callable[[Row], bool | str | None] | None = None,
        server: WorkServer | None = None,
        **options: Unpack[EvolutionOptions],
    ) -> None:
        given, renamed = other_names.translate(options)
        if server is not None:
            given = parts.check_served(reward, reward_batch, given, tests=test_kwargs is not None)
            reward = parts.by_workers
        parts.check_form(reward, reward_batch, given, tests=test_kwargs is not None)
        self.config = config = build(EvolutionConfig, given)
        self.model = model
        self._server = server
        self._publication: Any = None  # how a cluster's viewers see a run under way
        self.save_path = None if save_path is None else Path(save_path)
        if self.save_path is not None:
            check_path(self.save_path)
        self.on_iteration = on_iteration
        self.history: list[Row] = []
        self.outcome: Outcome | None = None
        self.notices: list[str] = []  # what the user should know: what was repaired on resume, what falls back
        self.tested: float | None = None  # by the test call of the report after the last iteration, if there was one
        for text in renamed:
            self.note(text)
        self._test_kwargs = test_kwargs
        self._tester: Caller | None = None
        self._report_every: int | None = None
        self._flat = parts.flat_of(config, model, params)
        self._task: Functions | BatchTask
        if reward is not None:
            self._task = parts.function_task(config, self._flat, reward, test_kwargs or {})
        else:
            assert reward_batch is not None
            self._task = parts.batch_task(config, self._flat, reward_batch, self.note)
        self._table = open_table(config.noise, config.seed, config.table_size, self._flat.dimension)
        if self._table is not None:
            weakref.finalize(self, self._table.close)
        self._state = parts.initial_state(config, self._flat, self._task, self._table)
        self._folder = None if config.run_dir is None else self._new_folder(Path(config.run_dir))

    @classmethod
    def resume(cls, run_dir: str | Path, model: Subject, reward: Function | None = None, **arguments: Any) -> Evolution:
        """Go on with a run folder, bit-identical to never having stopped: nothing is evaluated again.

        `model` gives the layout; its values do not matter. The other arguments are those of `Evolution`: what is not
        stored (`reward_batch`, `params`, …) is given anew, stop conditions and workers may be changed, the rest may not.
        """
        folder = RunFolder.open(Path(run_dir))
        known = {f.name: f for f in fields(EvolutionConfig)}
        for name in arguments.keys() & known.keys():
            if name not in EVOLUTION_RESUMABLE:
                raise UsageError(f"{name} cannot be changed on resume, since the result would not be that run's")
        stored = vars(folder.config(lambda name: EvolutionConfig))
        options = {name: value for name, value in stored.items() if value != default_of(known[name])}
        self = cls(model, reward, **{**options, **arguments})
        self._folder = folder
        self.notices += parts.continue_in(folder, self.config, self._state, parts.about(self._flat, self._task))
        self.history = folder.rows()
        self._flat.write(self._state.final)
        return self

    @property
    def iteration(self) -> int:
        """How many iterations have been made."""
        return self._state.generation

    @property
    def strategy(self) -> Strategy:
        """The strategy that moves the centre."""
        return self._state.strategy

    @property
    def best_reward(self) -> float | None:
        """The best reward of a centre so far, a mean of its evaluations."""
        return self._state.progress.best_return

    def run(self, iterations: int, report_every: int | None = 10) -> Any:
        """Make so many more iterations, or stop at the goal; answers the model, which holds the parameters found."""
        for name, value in (("iterations", iterations), ("report_every", report_every)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise UsageError(f"{name} is {value!r}; expected a whole number of at least 1")
        self._state.config = replace(self.config, generations=self.iteration + iterations)
        self._report_every = report_every
        if self._folder is not None:
            self._folder.lock()
        status = "failed"
        try:
            with self._engine() as engine, self._shown(engine) as self._publication:
                self.outcome = train(self._folder or MemoryRun(), self._state, engine, self._seen)
                if self._publication is not None:
                    self._publication.end("finished", self.outcome.reason)
            status = f"finished: {self.outcome.reason}"
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        except RunError as error:
            raise RunError(f"{error}\n{self._advice()}") from error
        finally:
            self._leave(status)
        if report_every is not None and self.history and self.iteration % report_every:
            self._report(self.history[-1])
        return self.model

    def _engine(self) -> contextlib.AbstractContextManager[Any]:
        """Where members are evaluated: here, on every node of a cluster, or by a server's workers."""
        if self._server is not None:
            assert isinstance(self._task, Functions)
            return contextlib.closing(RemoteEngine(self._server, self._task))
        if self.config.engine == "local":
            return parts.function_engine(self.config, self._task, self._table)
        from esker.cluster.functions import cluster_engine

        assert isinstance(self._task, Functions)
        fingerprint = parts.about(self._flat, self._task)["fingerprint"]
        return cluster_engine(self.config, self._task, self._table, self.note, fingerprint)

    def _shown(self, engine: Any) -> contextlib.AbstractContextManager[Any]:
        """Where a cluster's viewers see this run: nowhere, unless it has a run folder and joined a cluster."""
        if self.config.engine == "local" or self._server is not None or self._folder is None:
            return contextlib.nullcontext()
        from esker.cluster.board import published
        from esker.cluster.connect import is_own

        assert isinstance(self._task, Functions)
        names = (
            "algo",
            "seed",
            "population",
            "generation_limit",
            "steps",
            "training_limit",
            "wall_time",
            "goal",
            "patience",
        )
        shown = {name: getattr(self._state.config, name) for name in names} | {"env": label(self._task.call.function)}
        return (
            contextlib.nullcontext() if is_own() else published(self._folder, SimpleNamespace(**shown), engine, self.history)
        )

    def _new_folder(self, path: Path) -> RunFolder:
        stored = replace(self.config, run_dir=None)  # a run folder can be moved: it does not name itself
        folder = RunFolder.create(path, stored, parts.about(self._flat, self._task))
        folder.checkpoint(self._state.snapshot(), latest=True)
        return folder

    def _seen(self, row: Row, returns: Any = None) -> str | None:
        self.history.append(row)
        self.tested = None
        if self._report_every is not None and self.iteration % self._report_every == 0:
            self._report(row)
        if self._publication is not None and (asked := self._publication.row(row)):
            return str(asked)
        stop = self.on_iteration is not None and self.on_iteration(row)
        return stop if isinstance(stop, str) and stop else "stopped by on_iteration" if stop else None

    def note(self, text: str) -> None:
        """Keep a notice, and print it."""
        self.notices.append(text)
        if not self.config.quiet:
            print(text, flush=True)

    def _report(self, row: Row) -> None:
        """Make the test call, print a line, save the parameters."""
        self.tested = None if self._test_kwargs is None else self._test(self._test_kwargs)
        if not self.config.quiet:
            print(describe_row(row, self.tested), flush=True)
        if self.save_path is not None:
            self._flat.write(self._state.final)
            self._save(self.save_path)

    def _save(self, path: Path) -> None:
        save(path, self.model)

    def _test(self, test_kwargs: Mapping[str, Any]) -> float:
        """One more call on the centre, in this process."""
        task = self._task
        assert isinstance(task, Functions)
        self._tester = self._tester or Caller(task.subject, task.layout, task.call, task.device)
        seed = episode_seed(task.seed, Purpose.EVALUATION, self.iteration)
        with generators_kept(True):
            seed_generators(seed)
            try:
                value = self._tester(self.strategy.center.numpy(), seed, test_kwargs)
                return number(value, self._tester.device)
            except BadReward as error:
                raise RunError(f"the test call after iteration {self.iteration}: {error}") from None
            finally:
                self._tester.restore()
                self._flat.write(self._state.final)

    def _leave(self, status: str) -> None:
        """Leave model, save path and folder in order, however the run ended."""
        self._flat.write(self._state.final)
        if self._folder is not None:
            with contextlib.suppress(OSError):  # a full disk: the facts are safe, and they suffice
                self._folder.checkpoint(self._state.snapshot(), latest=True)
                self._folder.prune(self.config.keep)
                self._folder.write_status(status)
            self._folder.unlock()
        if self.save_path is not None and self.history:
            finished = status.startswith("finished")
            with contextlib.suppress(*() if finished else (RunError,)):  # what went wrong first is what to say
                self._save(self.save_path)

    def _advice(self) -> str:
        if self._folder is None:
            return f"the model holds what {self.iteration} complete iterations found; run() goes on from there"
        return f"nothing committed is lost; continue with: esker.Evolution.resume({str(self._folder.path)!r}, model, reward)"


def describe_row(row: Row, tested: float | None = None) -> str:
    """An iteration in one line."""
    center = "–" if row["center_return"] is None else f"{row['center_return']:.6g}"
    best = "–" if row["best_return"] is None else f"{row['best_return']:.6g}"
    test = "" if tested is None else f"  test {tested:.6g}"
    return (
        f"iteration {row['generation'] + 1}  reward {center}  best {best}{test}  "
        f"members mean {row['return_mean']:.6g} max {row['return_max']:.6g}  "
        f"sigma {row['sigma']:.3g}  lr {row['lr']:.3g}  {row['wall_time']:.1f} s"
    )
