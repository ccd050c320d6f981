"""Simulated machines and the actors on them: calls may be late, lost or doubled, machines are cut off or lose power.

The directory of nodes and actors (Ray's head) never fails here. Errors come as Ray raises them: a call to an actor that is
away raises ActorUnavailableError, to one that is gone ActorDiedError, and what an actor raised RayTaskError.
"""

from __future__ import annotations

import pickle
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim_disk import Disk
from sim_machines import Actor, Call, Machine
from sim_ray import (
    ActorDiedError,
    ActorUnavailableError,
    Affinity,
    GetTimeoutError,
    Handle,
    ObjectLostError,
    RayError,
    RayTaskError,
    Reference,
)
from sim_world import Process, World, the

DECLARED_DEAD_AFTER = 4.0  # seconds without a sign of life


class Cluster:
    """Machines and actors, and the messages between them."""

    def __init__(self, world: World, root: Path, machines: int) -> None:
        self.world = world
        self.head = Machine("h", Disk(root / "head"))
        self.machines = [Machine(chr(ord("a") + number), Disk(root / f"m{number}")) for number in range(machines)]
        self.actors: list[Actor] = []
        self.kept: list[Any] = []  # references and handles that travel
        self.loss = 0.0  # probability that a call or its answer is lost
        self.slowness = 0.0  # probability that a message takes seconds
        self.on_made: Callable[[Actor, Process], None] = lambda actor, process: None

    # Machines

    @property
    def everything(self) -> list[Machine]:
        return [self.head, *self.machines]

    def start(self, machine: Machine, name: str, target: Callable[[], None]) -> Process:
        """A new process."""
        process = Process(f"{name}@{machine.id}", machine)
        machine.processes = [other for other in machine.processes if other.alive] + [process]
        self.world.spawn(process, target)
        return process

    def reaches(self, one: Machine, other: Machine) -> bool:
        return one is other or (one.up and other.up and not one.cut and not other.cut)

    def crash(self, machine: Machine, back_after: float, new_disk: bool = False) -> None:
        """Power fails; the machine comes back later, as another node."""
        if not machine.up:
            return
        self.world.say(f"machine {machine.id} loses power{' and its disk' if new_disk else ''}")
        machine.up = False
        for process in machine.processes:
            self.world.kill(process)
        machine.disk.erase() if new_disk else machine.disk.fail_power()
        life = machine.life
        self.world.at(DECLARED_DEAD_AFTER, lambda: self._declare_dead(machine, life))
        self.world.at(max(back_after, DECLARED_DEAD_AFTER + 1), lambda: self._join(machine))

    def part(self, machine: Machine, seconds: float) -> None:
        """Cut a machine off; after a while it is taken for dead, while its processes live on until it is heard again."""
        if not machine.up or machine.cut:
            return
        self.world.say(f"machine {machine.id} is cut off for {seconds:.1f} s")
        machine.cut = True
        life = machine.life
        self.world.at(DECLARED_DEAD_AFTER, lambda: self._declare_dead(machine, life) if machine.cut else None)
        self.world.at(seconds, lambda: self._heal(machine, life))

    def _heal(self, machine: Machine, life: int) -> None:
        self.world.say(f"machine {machine.id} is heard again")
        machine.cut = False
        for actor in self.actors:
            if actor.process is not None and actor.process.machine is machine and not actor.process.alive:
                self._process_died(actor, actor.process)
        if machine.up and not machine.joined and machine.life == life:
            ghosts = list(machine.processes)
            self.world.at(self.world.dice.uniform(0, 3), lambda: [self.world.kill(ghost) for ghost in ghosts])
            self.world.at(4, lambda: self._join(machine))

    def _join(self, machine: Machine) -> None:
        if machine.cut:
            self.world.at(5, lambda: self._join(machine))
            return
        machine.up = True
        if not machine.joined:
            machine.life += 1
            machine.joined = True
            self.world.say(f"machine {machine.id} joins")

    def _declare_dead(self, machine: Machine, life: int) -> None:
        if machine.life != life or not machine.joined:
            return
        self.world.say(f"machine {machine.id} is taken for dead")
        machine.joined = False
        for actor in self.actors:
            if not actor.dead and actor.process is not None and actor.process.machine is machine:
                self._lost(actor)

    # Actors

    def make(self, kind: type[Any], options: dict[str, Any], arguments: tuple[Any, ...]) -> Handle:
        self._ask_directory()
        name = options.get("name")
        if name is not None:
            found = next((actor for actor in self.actors if actor.name == name and not actor.dead), None)
            if found is not None:
                if options.get("get_if_exists"):
                    return Handle(found)
                raise ValueError(f"the name {name} is taken")
        place = options.get("scheduling_strategy")
        node, soft = (place.node_id, place.soft) if isinstance(place, Affinity) else (None, True)
        actor = Actor(kind, pickle.dumps(arguments), options, name, node, soft)
        self.actors.append(actor)
        self.world.at(self.world.dice.uniform(0.05, 0.5), lambda: self._place(actor))
        return Handle(actor)

    def _place(self, actor: Actor) -> None:
        """Start an actor's process on a machine that is there."""
        if actor.dead:
            return
        there = [machine for machine in self.machines if machine.joined]
        wanted = [machine for machine in there if machine.id == actor.node]
        if not wanted and not actor.soft:
            actor.dead = True
            self._fail(actor, ActorDiedError("its node is gone"))
            return
        able = [machine for machine in wanted or there if machine.up]
        if not able:
            self.world.at(1.0, lambda: self._place(actor))
            return
        machine = self.world.dice.choice(able)
        name = f"{actor.kind.__name__}.{actor.lives}"

        def live() -> None:
            arguments = pickle.loads(actor.arguments)
            instance = actor.kind(*[the().cluster.localize(argument, machine) for argument in arguments])
            if actor.process is process:
                actor.instance = instance
                for call in actor.under_way:
                    self._deliver(call)

        actor.instance = None
        actor.process = process = self.start(machine, name, live)
        process.at_death.append(lambda: self._process_died(actor, process))
        self.world.say(f"{process.name} is started")
        self.on_made(actor, process)

    def localize(self, argument: Any, machine: Machine) -> Any:
        """An argument as a machine understands it; replaced by whoever sends paths."""
        return argument

    def _process_died(self, actor: Actor, process: Process) -> None:
        if actor.process is process and process.machine.up and not process.machine.cut:
            self.world.at(self.world.dice.uniform(0.2, 1.0), lambda: self._lost(actor) if actor.process is process else None)

    def _lost(self, actor: Actor) -> None:
        """The directory learns that an actor's process is gone, or takes it for gone."""
        actor.process, actor.instance = None, None
        actor.lives += 1
        if actor.options.get("max_restarts", 0) == 0:
            actor.dead = True
            self._fail(actor, ActorDiedError("it died"))
            return
        if not actor.retries:
            self._fail(actor, ActorUnavailableError("it is being restarted"))
        self.world.at(self.world.dice.uniform(0.5, 2.5), lambda: self._place(actor))

    def kill(self, actor: Actor) -> None:
        self._ask_directory()

        def end() -> None:
            actor.dead = True
            if actor.process is not None and self.reaches(self.head, actor.process.machine):
                self.world.kill(actor.process)
            self._fail(actor, ActorDiedError("it was killed"))

        self.world.at(self._delay(), end)

    def _fail(self, actor: Actor, error: RayError) -> None:
        calls, actor.under_way = actor.under_way, []
        for call in calls:
            self._settle(call, error=error)

    def _ask_directory(self) -> None:
        """A question to the head: whoever is cut off from it waits."""
        world, machine = self.world, self.world.current.process.machine
        world.step()
        world.wait(lambda: machine is None or self.reaches(machine, self.head))

    # Calls

    def _delay(self) -> float:
        dice = self.world.dice
        return dice.uniform(0.5, 12.0) if dice.random() < self.slowness else dice.uniform(0.0005, 0.01)

    def call(self, actor: Actor, method: str, arguments: tuple[Any, ...]) -> Reference:
        self.world.step()
        call = Call(actor, self.world.current.process, method, pickle.dumps(arguments), Reference())
        if actor.dead:
            self._settle(call, error=ActorDiedError("it is gone"))
        else:
            actor.under_way.append(call)
            self._send(call)
        return call.reference

    def _send(self, call: Call) -> None:
        if self.world.disturbed and self.world.dice.random() < self.loss:
            self.world.at(self.world.dice.uniform(1, 3), lambda: self._was_lost(call))
        else:
            self.world.at(self._delay(), lambda: self._deliver(call))

    def _was_lost(self, call: Call) -> None:
        """A connection broke: Ray tries again where it may, and otherwise says that the actor is unavailable."""
        if call.actor.retries:
            self._send(call)
        else:
            self._settle(call, error=ActorUnavailableError(f"{call.method} may or may not have run"))

    def _deliver(self, call: Call) -> None:
        actor = call.actor
        if call.reference.ready or not actor.available:  # an actor that is away finds its calls when it comes
            return
        process, instance = actor.process, actor.instance
        assert process is not None
        if not self.reaches(call.caller.machine, process.machine):
            self.world.at(self.world.dice.uniform(0.5, 2), lambda: self._deliver_later(call))
            return

        def work() -> None:
            try:
                value, error = pickle.dumps(getattr(instance, call.method)(*pickle.loads(call.arguments))), None
            except Exception as problem:
                value, error = None, RayTaskError(problem)
            self._answer(call, process, value, error)

        self.world.spawn(process, work)

    def _deliver_later(self, call: Call) -> None:
        if self.world.dice.random() < 0.2 and not call.actor.retries:
            self._settle(call, error=ActorUnavailableError("it cannot be reached"))
        else:
            self._deliver(call)

    def _answer(self, call: Call, process: Process, value: bytes | None, error: RayError | None) -> None:
        def arrive() -> None:
            if not self.reaches(process.machine, call.caller.machine):
                self.world.at(1.0, arrive)
            elif self.world.disturbed and self.world.dice.random() < self.loss:
                self._was_lost(call)
            else:
                self._settle(call, value, error)

        self.world.at(self._delay(), arrive)

    def _settle(self, call: Call, value: bytes | None = None, error: RayError | None = None) -> None:
        if not call.reference.ready:
            call.reference.value, call.reference.error = value, error
        if call in call.actor.under_way:
            call.actor.under_way.remove(call)

    # What a process sees of the cluster

    def put(self, value: Any) -> Reference:
        self.world.step()
        reference = Reference()
        reference.value, reference.owner = pickle.dumps(value), self.world.current.process
        return reference

    def get(self, reference: Reference, timeout: float | None = None) -> Any:
        world = self.world
        world.step()
        owner, machine = reference.owner, world.current.process.machine
        if owner is not None:
            if not owner.alive:
                raise ObjectLostError("its owner is gone")
            if not world.wait(lambda: not owner.alive or self.reaches(machine, owner.machine), timeout):
                raise GetTimeoutError
        elif not reference.ready and not world.wait(lambda: reference.ready, timeout):
            raise GetTimeoutError("it took too long")
        if reference.error is not None:
            raise reference.error
        assert reference.value is not None
        return pickle.loads(reference.value)

    def wait(
        self, references: list[Reference], num_returns: int = 1, timeout: float | None = None
    ) -> tuple[list[Reference], list[Reference]]:
        self.world.step()

        def enough() -> bool:
            return sum(reference.ready for reference in references) >= num_returns

        if not enough() and timeout != 0:
            self.world.wait(enough, timeout)
        ready = [reference for reference in references if reference.ready][:num_returns]
        return ready, [reference for reference in references if reference not in ready]

    def nodes(self) -> list[dict[str, Any]]:
        self._ask_directory()
        offer = {"Resources": {"CPU": 2.0}, "Labels": {}}
        return [{"NodeID": one.id, "Alive": one.joined, "NodeName": one.name, **offer} for one in self.machines]

    def find(self, name: str) -> Handle:
        self._ask_directory()
        for actor in self.actors:
            if actor.name == name and not actor.dead:
                return Handle(actor)
        raise ValueError(f"no actor is named {name}")

    def names(self) -> list[dict[str, str]]:
        self._ask_directory()
        return [{"name": actor.name, "namespace": "esker"} for actor in self.actors if actor.name and not actor.dead]

    def context(self) -> Any:
        process = self.world.current.process
        actor = next((actor for actor in self.actors if actor.process is process), None)
        again = actor is not None and actor.lives > 0
        return types.SimpleNamespace(get_node_id=lambda: process.machine.id, was_current_actor_reconstructed=again)
