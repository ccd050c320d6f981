"""One schedule of a simulated cluster: a seed decides machines, network, disks and faults; what must hold is checked."""

from __future__ import annotations

import contextlib
import random
import shutil
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import sim_clock
import sim_ray
import sim_task
from sim_checks import Watch, check_end, watching
from sim_clock import sleep
from sim_cluster import Cluster
from sim_machines import Actor, Machine
from sim_world import Process, World, inhabited, the

from esker.cluster import submit, viewer
from esker.cluster.coordinator import Coordinator
from esker.config.build import build
from esker.errors import RunError, UsageError
from esker.runs.folder import RunFolder
from esker.system import clock, disk

NAME = "run"
GENERATIONS = 4
DISTURBED = 45.0  # seconds in which faults happen
LONGEST = 900.0  # virtual seconds in which a run must have ended
CLOCK = ("Condition", "Event", "Lock", "SimpleQueue", "Thread", "exit_process", "monotonic", "sleep", "time", "time_ns")
DISK = ("write", "append", "truncate", "rename", "link", "remove", "remove_tree", "make_folder", "claim")


@dataclass
class Outcome:
    """What a schedule came to."""

    seed: int
    problems: list[str]
    trace: list[str]
    steps: int
    faults: list[str] = field(default_factory=list)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Put the simulation in place of clock, disk, Ray and worker processes."""
    modules = [str(Path(__file__).parent)]
    for warm in (False, True):
        beginning(warm)  # on a real disk
    with contextlib.ExitStack() as stack:
        for name in CLOCK:
            stack.enter_context(mock.patch.object(clock, name, getattr(sim_clock, name)))
        for name in DISK:
            stack.enter_context(mock.patch.object(disk, name, _on_own_disk(name)))
        stack.enter_context(mock.patch.dict(sys.modules, sim_ray.modules()))
        stack.enter_context(mock.patch.object(sys, "path", [*modules, *sys.path]))
        stack.enter_context(mock.patch("esker.engines.node.LocalEngine", sim_task.Bench))
        stack.enter_context(mock.patch("esker.engines.node.versions", dict))
        stack.enter_context(mock.patch("esker.cluster.coordinator.gc", types.SimpleNamespace(freeze=lambda: None)))
        stack.enter_context(mock.patch("esker.runs.folder.build", _build))  # a second time it gives the same
        stack.enter_context(mock.patch("esker.runs.runner.terminate_as_interrupt", contextlib.nullcontext))
        stack.enter_context(watching())
        yield


def _on_own_disk(name: str) -> Callable[..., Any]:
    def act(*arguments: Any, **options: Any) -> Any:
        return getattr(the().current.process.machine.disk, name)(*arguments, **options)

    return act


def _build(kind: type[Any], *layers: dict[str, Any]) -> Any:
    return _built(kind, repr(layers))


@lru_cache
def _built(kind: type[Any], layers: str) -> Any:
    return build(kind, *eval(layers))  # of text that `repr` made


@lru_cache
def beginning(warm: bool) -> dict[str, bytes]:
    """The files of a run that has not begun."""
    with tempfile.TemporaryDirectory() as place, mock.patch("esker.runs.folder.record_run"):
        config = sim_task.TinyConfig(generations=GENERATIONS, warm=warm)
        folder = RunFolder.create(Path(place) / NAME, config, {"fingerprint": None, "parameters": 1})
        folder.checkpoint(sim_task.start(config, None, None, True).snapshot(), latest=True)
        return {str(path.relative_to(place)): path.read_bytes() for path in sorted(folder.path.rglob("*")) if path.is_file()}


class Schedule:
    """A cluster, a run on it, and what happens to them."""

    def __init__(self, seed: int, root: Path) -> None:
        self.seed = seed
        self.world = World(seed)
        dice = self.world.dice
        self.cluster = self.world.cluster = Cluster(self.world, root, dice.choice([2, 3, 3, 3, 4]))
        self.cluster.on_made = self._made
        self.cluster.localize = _localize  # type: ignore[method-assign]
        self.warm = dice.random() < 0.3
        self.watch = self.world.watch = Watch(GENERATIONS, self.warm)  # type: ignore[attr-defined]
        self.faults: list[str] = []
        self.dooms: dict[tuple[str, int], int] = {}
        self.made: dict[str, int] = {}
        self.finished = False
        self.cluster.head.disk.lay_out(beginning(self.warm))
        if seed:  # schedule 0 is undisturbed
            self._disturb(dice)

    def run(self) -> Outcome:
        with inhabited(self.world):
            self._user()
            if self.seed:
                self.world.at(self.world.dice.uniform(0, 20), self._follower)
            self.world.run(lambda: self.finished or bool(self.watch.problems), LONGEST)
        problems = list(self.watch.problems)
        if self.world.stuck:
            problems.append(f"stuck: {self.world.stuck}")
        problems += [f"{name} ended by {type(error).__name__}: {error}" for name, error in self.world.crashes]
        if not problems:
            problems += check_end(self.cluster.head.disk.root / NAME, self.watch)
        return Outcome(self.seed, problems, self.world.trace, self.world.steps, self.faults)

    # Who takes part

    def _user(self) -> None:
        """Whoever wants the run: starts it, watches it, goes on with it when it ended too early."""

        def live() -> None:
            for _ in range(6):
                try:
                    self._pursue()
                except (RunError, UsageError, KeyboardInterrupt) as error:
                    self.world.say(f"the run ended: {error}")
                    self.watch.ended_early(error)
                    sleep(self.world.dice.uniform(5, 30))
                    continue
                self.finished = True
                return
            self.watch.problems.append("it did not finish in six attempts")
            self.finished = True

        self.user = self.cluster.start(self.cluster.head, "user", live)

    def _pursue(self) -> None:
        folder = RunFolder(self.cluster.head.disk.root / NAME)
        folder.check_trust(True)
        observer = self.watch.observer("user")
        try:
            submit.run_on_cluster(folder, None, observer, [])  # type: ignore[arg-type]
            return
        except UsageError as error:
            if "is active on this cluster" not in str(error):
                raise
        coordinator = viewer.find(NAME)
        end = viewer.watch(coordinator, NAME, folder.path, observer)
        viewer.bring_home(coordinator, NAME, folder.path)
        if end.kind != "finished":
            raise RunError(end.text)

    def _follower(self) -> None:
        """Somebody who looks on from some machine."""

        def live() -> None:
            path = self.cluster.head.disk.root / "elsewhere"
            with contextlib.suppress(RunError, UsageError):
                viewer.watch(viewer.find(NAME), NAME, path, self.watch.observer("follower"))

        self.cluster.start(self.cluster.head, "follower", live)

    # What happens to them

    def _disturb(self, dice: random.Random) -> None:
        cluster = self.cluster
        cluster.loss = dice.choice([0, 0, 0.02, 0.1])
        cluster.slowness = dice.choice([0, 0, 0.02, 0.1])
        skew, slow = dice.choice([0, 0, 3, 30]), dice.choice([0, 0, 0.2])
        for machine in cluster.machines:
            machine.skew, machine.disk.slow = dice.uniform(-skew, skew), slow
        for kind, most in (("Coordinator", 700), ("NodeEngine", 300)):
            for life in range(4):
                if dice.random() < 0.35:
                    self.dooms[kind, life] = int(most ** dice.uniform(0.2, 1.0))
        for _ in range(dice.choice([0, 1, 1, 2, 3])):
            self.world.at(dice.uniform(0, 14), self._fault)
        self.world.at(DISTURBED, self._calm)

    def _made(self, actor: Actor, process: Process) -> None:
        kind = actor.kind.__name__
        number = self.made[kind] = self.made.get(kind, -1) + 1
        if self.world.disturbed:
            process.doom = self.dooms.get((kind, number))

    def _calm(self) -> None:
        self.world.disturbed = False
        self.cluster.slowness = 0
        for machine in self.cluster.machines:
            machine.disk.full, machine.disk.slow = False, 0.0
            for process in machine.processes:
                process.doom = None

    def _victim(self) -> Machine:
        """Some machine, often the coordinator's."""
        hosts = [actor.process.machine for actor in self.cluster.actors if actor.kind is Coordinator and actor.available]
        return self.world.dice.choice(hosts if hosts and self.world.dice.random() < 0.4 else self.cluster.machines)

    def _fault(self) -> None:
        dice, machine = self.world.dice, self._victim()
        kind = dice.choice(["power", "power", "new disk", "cut", "cut", "pause", "kill", "freeze", "full", "viewer"])
        self.faults.append(f"{self.world.now:.1f} {kind} {machine.id}")
        running = [process for process in machine.processes if process.alive]
        if kind in ("power", "new disk"):
            self.cluster.crash(machine, dice.uniform(6, 40), new_disk=kind == "new disk")
        elif kind == "cut":
            self.cluster.part(machine, dice.choice([dice.uniform(0.5, 3.5), dice.uniform(5, 50)]))
        elif kind == "pause":  # a machine that stands still is also not heard
            seconds = dice.uniform(1, 30)
            self.cluster.part(machine, seconds)
            for process in running:
                process.frozen_until = self.world.now + seconds
        elif kind == "full":
            machine.disk.full = True
            self.watch.disk_was_full = True
            self.world.at(dice.uniform(1, 20), lambda: setattr(machine.disk, "full", False))
        elif kind == "viewer":
            if self.user.alive:  # otherwise another one is on the way already
                self.world.kill(self.user)
                self.world.at(dice.uniform(1, 20), self._user)
        elif running:
            process = dice.choice(running)
            self.world.say(f"{kind} {process.name}")
            if kind == "kill":
                self.world.kill(process)
            else:
                process.frozen_until = self.world.now + dice.uniform(1, 20)


def _localize(argument: Any, machine: Machine) -> Any:
    """The same path names another folder on each machine."""
    return replace(argument, path=str(machine.disk.root / NAME)) if hasattr(argument, "modules") else argument


def simulate(seed: int) -> Outcome:
    """Run one schedule, inside `installed()`."""
    root = Path(tempfile.mkdtemp(prefix="simulated-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        return Schedule(seed, root).run()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def reproduce(outcome: Outcome) -> str:
    """What was wrong with a schedule, and the command that shows it again."""
    return f"seed {outcome.seed}: {'; '.join(outcome.problems)}\n    python tests/faults/simulate.py --seed {outcome.seed}"
