"""What must hold in every schedule, whatever happens: checked at each commit, at each recovery and at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import sim_task
from sim_world import Process, the

from esker.algorithms.facts import Facts
from esker.cluster.coordinator import Coordinator
from esker.cluster.replicated import ReplicatedFolder
from esker.engines.node import NodeEngine, NodeReply, Order
from esker.engines.plan import Plan
from esker.runs import checkpoints
from esker.runs import facts as records
from esker.runs.folder import RunFolder
from esker.runs.recovery import rewind


class Watch:
    """What was seen of a schedule, and what was wrong with it."""

    def __init__(self, generations: int, warm: bool) -> None:
        self.generations, self.warm = generations, warm
        self.reference = undisturbed(generations, warm)
        self.problems: list[str] = []
        self.committed = 0
        self.disk_was_full = False
        self.committers: dict[int, Process] = {}  # by epoch
        self.stored: list[tuple[Process, int, int]] = []  # engine, epoch, length
        self.ends: list[str] = []

    def problem(self, text: str) -> None:
        the().say(f"WRONG: {text}")
        self.problems.append(text)

    def ended_early(self, error: BaseException) -> None:
        """A run that did not finish must have a reason that is not ours."""
        text = str(error)
        self.ends.append(text)
        if self.disk_was_full and ("could not be committed" in text or "No space left" in text):
            return
        if "run folder is lost" in text and not self._copies():
            return
        if "which is gone" in text:  # it had finished, and its machine was lost before the folder came home
            return
        self.problem(f"the run ended early: {text.splitlines()[-1] if 'Traceback' in text else text}")

    def _copies(self) -> list[int]:
        """The generations that engines have copies of."""
        engines = [
            actor.instance for actor in the().cluster.actors if isinstance(actor.instance, NodeEngine) and not actor.dead
        ]
        return [number for engine in engines if (number := count(copy_of(engine)))]

    def observer(self, name: str) -> Observer:
        return Observer(self, name)


class Observer:
    """A viewer's display: rows must follow one another and be those of the undisturbed run."""

    def __init__(self, watch: Watch, name: str) -> None:
        self.watch, self.name, self.next = watch, name, 0

    def begin(self, config: Any, folder: Any, rows: list[dict[str, Any]]) -> None:
        self.next = len(rows)

    def generation(self, row: dict[str, Any], returns: Any = None) -> None:
        number = row["generation"]
        the().say(f"{self.name} sees generation {number}")
        if number != self.next:
            self.watch.problem(f"{self.name} was shown generation {number} instead of {self.next}")
        elif row["center_return"] != self.watch.reference.center_returns[number]:
            self.watch.problem(f"{self.name} was shown another centre in generation {number}")
        self.next = number + 1

    def note(self, text: str) -> None:
        the().say(f"{self.name} is told: {text}")

    def end(self, reason: str) -> None:
        the().say(f"{self.name} sees the end: {reason}")


class Undisturbed:
    """The same run in one process, without anything that could fail."""

    def __init__(self, generations: int, warm: bool) -> None:
        config = sim_task.TinyConfig(generations=generations, warm=warm)
        state = sim_task.start(config, None, None, True)
        self.facts: list[Facts] = []
        while state.generation < generations:
            job, plan = state.job(), state.plan()
            assert isinstance(plan, Plan)
            plan.add([sim_task.TinyTask().result(job, item) for item in plan.take(1000)])
            self.facts.append(state.facts(plan, 0.0))
            state.move(self.facts[-1])
        self.center_returns = [float(facts.center_returns.mean()) for facts in self.facts]
        self.arrays = {name: array.copy() for name, array in state.snapshot().arrays.items()}


@lru_cache
def undisturbed(generations: int, warm: bool) -> Undisturbed:
    return Undisturbed(generations, warm)


def check_end(path: Path, watch: Watch) -> list[str]:
    """The folder that was brought home: every generation, with the bits of the undisturbed run."""
    folder, reference = RunFolder(path), watch.reference
    folder.check_trust(True)
    if folder.committed() != watch.generations:
        return [f"{folder.committed()} generations came home instead of {watch.generations}"]
    for number, facts in enumerate(folder.facts()):
        if facts.fitness.tobytes() != reference.facts[number].fitness.tobytes():
            return [f"generation {number} has other bits"]
    config = sim_task.TinyConfig(generations=watch.generations, warm=watch.warm)
    state = sim_task.start(config, None, None, False)
    rewind(folder, state, watch.generations)
    arrays = state.snapshot().arrays
    wrong = [name for name in reference.arrays if arrays[name].tobytes() != reference.arrays[name].tobytes()]
    return [f"{', '.join(wrong)}: other bits"] if wrong else []


def count(data: bytes) -> int:
    """How many generations facts hold."""
    return records.scan(data).reach(0)


def copy_of(engine: NodeEngine) -> bytes:
    """The facts that a node keeps, read without its noticing."""
    file = engine.replica._facts
    file.seek(0)
    return file.read(engine.replica._length)


@contextlib.contextmanager
def watching() -> Iterator[None]:
    """Check commits and recoveries as they happen."""
    commit, store, feed, recover = ReplicatedFolder.commit, NodeEngine.store, NodeEngine.feed, Coordinator._recover

    def checked_commit(self: ReplicatedFolder, facts: Facts) -> None:
        commit(self, facts)
        _check_commit(self, int(facts.generation[0]))

    def checked_store(self: NodeEngine, epoch: int, files: dict[str, bytes], facts_at: int, facts: bytes) -> int:
        obeyed, length = self._epoch, store(self, epoch, files, facts_at, facts)
        _check_order(obeyed, epoch)
        the().watch.stored.append((the().current.process, epoch, length))  # type: ignore[attr-defined]
        return length

    def checked_feed(self: NodeEngine, order: Order, job: list[Any]) -> NodeReply:
        obeyed, answer = self._epoch, feed(self, order, job)
        _check_order(obeyed, order.epoch)
        return answer

    def checked_recover(self: Coordinator) -> tuple[ReplicatedFolder, int]:
        held = _holders()
        folder, epoch = recover(self)
        _check_recovery(folder, held)
        return folder, epoch

    with (
        mock.patch.object(ReplicatedFolder, "commit", checked_commit),
        mock.patch.object(NodeEngine, "store", checked_store),
        mock.patch.object(NodeEngine, "feed", checked_feed),
        mock.patch.object(Coordinator, "_recover", checked_recover),
    ):
        yield


def _check_order(obeyed: int, epoch: int) -> None:
    """A node obeys the newest coordinator and no other."""
    if epoch < obeyed:
        name = the().current.process.name
        the().watch.problem(f"{name} obeyed a coordinator of epoch {epoch} after one of epoch {obeyed}")  # type: ignore[attr-defined]


def _check_commit(folder: ReplicatedFolder, generation: int) -> None:
    """On this disk for good and, unless the run says otherwise, on another machine; an epoch has one committer."""
    world = the()
    process, watch = world.current.process, world.watch  # type: ignore[attr-defined]
    alone = "alone" if folder._alone else "acknowledged"
    world.say(f"{process.name} has committed generation {generation} ({alone}) in epoch {folder._epoch}")
    first = watch.committers.setdefault(folder._epoch, process)
    if first is not process:
        watch.problem(f"{first.name} and {process.name} have both committed in epoch {folder._epoch}")
    durable = process.machine.disk.durable_content(folder.facts_file)
    if count(durable) <= generation:
        watch.problem(f"generation {generation} was committed and an outage of {process.machine.id} could take it")
    others = [node for node in folder._engine.nodes if node.id != folder._own_node] if folder._engine else []
    length = folder.facts_file.stat().st_size
    kept = any(e == folder._epoch and size >= length and p.machine is not process.machine for p, e, size in watch.stored)
    if others and not folder._alone and not kept:
        watch.problem(f"generation {generation} was committed, and no other node has it")


def _holders() -> list[tuple[Any, int]]:
    """Who has which generations, of those that the present process can reach."""
    world = the()
    here = world.current.process.machine
    file = here.disk.root / "run" / "facts"
    held = [(None, count(file.read_bytes()) if file.exists() else 0)]
    for actor in world.cluster.actors:
        if isinstance(actor.instance, NodeEngine) and not actor.dead and _reachable(actor):
            held.append((actor, count(copy_of(actor.instance))))
    return held


def _reachable(actor: Any) -> bool:
    world = the()
    here, process = world.current.process.machine, actor.process
    return (
        actor.available
        and process.machine.joined
        and process.frozen_until <= world.now
        and world.cluster.reaches(here, process.machine)
    )


def _check_recovery(folder: RunFolder, held: list[tuple[Any, int]]) -> None:
    """A coordinator goes on with the newest that it could reach all the while; snapshots are whole or not there."""
    world = the()
    for number in checkpoints.generations(folder.checkpoints):
        try:
            checkpoints.read(folder.checkpoints / checkpoints.folder_name(number))
        except checkpoints.DamagedCheckpoint as error:
            world.watch.problem(f"a snapshot is there and not whole: {error}")  # type: ignore[attr-defined]
    found = count(folder.facts_file.read_bytes()) if folder.facts_file.exists() else 0
    world.say(f"{world.current.process.name} goes on at generation {found}; reachable were {[number for _, number in held]}")
    for actor, number in held:
        if number > found and (actor is None or _reachable(actor)):
            where = "its own disk" if actor is None else actor.process.name
            world.watch.problem(f"a coordinator went on at generation {found}, and {where} had {number}")  # type: ignore[attr-defined]
