"""A run folder whose commits are acknowledged by another node, where there is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from esker.algorithms.facts import Facts
from esker.algorithms.snapshot import Snapshot
from esker.cluster.copies import essentials
from esker.engines.node import exit_if_outdated
from esker.engines.ray import RayEngine
from esker.engines.roster import Node
from esker.runs.folder import RunFolder
from esker.system import clock

COPIES = 2  # nodes that keep a copy
WITHIN = 10.0  # seconds for one of them to acknowledge


class ReplicatedFolder(RunFolder):
    """Commits go to the disk and then to other nodes; when `commit` returns, one of those has the generation too."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._engine: RayEngine | None = None
        self._epoch = 0
        self._own_node = ""
        self._files: dict[str, bytes] = {}
        self._lengths: dict[str, int] = {}  # by node: how much of the facts its copy has
        self._current: set[str] = set()  # nodes whose copy of the files is up to date
        self._owing: dict[Any, Node] = {}  # calls that were not answered in time
        self._alone = False  # the last commit is on this disk only, although there were other nodes

    def replicate_to(self, engine: RayEngine, epoch: int, own_node: str, note: Callable[[str], None]) -> None:
        """Copy to this engine's nodes from now on; `note` is called when none of them acknowledges."""
        self._engine, self._epoch, self._own_node, self._note = engine, epoch, own_node, note
        self._files = essentials(self, facts=False)

    def commit(self, facts: Facts) -> None:
        """Make a generation a fact here and on another node; without an acknowledgement, warn and continue."""
        super().commit(facts)
        others = [node for node in self._engine.nodes if node.id != self._own_node] if self._engine else []
        alone = bool(others) and not self._replicate(others)
        if alone and not self._alone:
            self._note(
                f"no other node acknowledged generation {int(facts.generation[0])} within {WITHIN:g} s: "
                "until one does, what is committed is on the coordinator's disk only"
            )
        elif self._alone and not alone and others:
            self._note(f"another node has acknowledged everything up to generation {int(facts.generation[0])}")
        self._alone = alone if others else self._alone

    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None:
        """Write a snapshot; it is sent with the next commit."""
        super().checkpoint(snapshot, best=best, latest=latest)
        if self._engine is not None:
            self._files = essentials(self, facts=False)
            self._current.clear()

    def _replicate(self, others: list[Node]) -> bool:
        """Send the facts to some nodes and wait for one of them; a node that was too late is not waited for again."""
        import ray

        length = self.facts_file.stat().st_size
        spare = [node for node in others if node not in self._still_owing(length)]
        calls = {self._send(node, length): node for node in spare[:COPIES]}
        waiting, spare = list(calls), spare[COPIES:]
        until = clock.monotonic() + WITHIN
        while waiting and clock.monotonic() < until:
            ready, waiting = ray.wait(waiting, num_returns=1, timeout=1.0)
            for call in ready:
                if self._acknowledged(calls[call], call, length):
                    return True
                if spare:
                    node = spare.pop()
                    another = self._send(node, length)
                    calls[another] = node
                    waiting.append(another)
        self._owing |= {call: calls[call] for call in waiting}
        return False

    def _still_owing(self, length: int) -> list[Node]:
        """The nodes that have not answered an earlier call yet; those that have by now are sent everything again."""
        import ray

        if self._owing:
            answered, _ = ray.wait(list(self._owing), num_returns=len(self._owing), timeout=0)
            for call in answered:
                self._acknowledged(self._owing.pop(call), call, length)
        return list(self._owing.values())

    def _send(self, node: Node, length: int) -> Any:
        """Send what this node's copy lacks: mostly the last record, sometimes files, to a new one everything."""
        start = self._lengths.get(node.id, 0)
        files = {} if node.id in self._current else self._files
        with self.facts_file.open("rb") as file:
            file.seek(start)
            piece = file.read(length - start)
        self._lengths[node.id] = length
        self._current.add(node.id)
        return node.actor.store.remote(self._epoch, files, start, piece)

    def _acknowledged(self, node: Node, call: Any, length: int) -> bool:
        import ray

        try:
            if ray.get(call) == length:
                return True
        except ray.exceptions.RayError as error:  # the engine notices that the node is gone
            exit_if_outdated(error)
        self._lengths.pop(node.id, None)
        self._current.discard(node.id)
        return False
