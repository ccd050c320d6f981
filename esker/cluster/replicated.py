"""A run folder whose commits are acknowledged by another node, where there is one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from esker.cluster.copies import essentials
from esker.engines.ray import RayEngine
from esker.engines.roster import Node
from esker.runs.checkpoints import Snapshot
from esker.runs.facts import Facts
from esker.runs.folder import RunFolder

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

    def replicate_to(self, engine: RayEngine, epoch: int, own_node: str) -> None:
        """Copy to this engine's nodes from now on."""
        self._engine, self._epoch, self._own_node = engine, epoch, own_node
        self._files = essentials(self, facts=False)

    def commit(self, facts: Facts) -> None:
        """Make a generation a fact here and on another node."""
        super().commit(facts)
        self._replicate()

    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None:
        """Write a snapshot; it travels with the next commit."""
        super().checkpoint(snapshot, best=best, latest=latest)
        if self._engine is not None:
            self._files = essentials(self, facts=False)
            self._current.clear()

    def _replicate(self) -> None:
        import ray

        others = [node for node in self._engine.nodes if node.id != self._own_node] if self._engine else []
        length = self.facts_file.stat().st_size
        calls = {self._send(node, length): node for node in others[:COPIES]}
        waiting, spare = list(calls), others[COPIES:]
        until = time.monotonic() + WITHIN
        while waiting and time.monotonic() < until:
            ready, waiting = ray.wait(waiting, num_returns=1, timeout=1.0)
            for call in ready:
                if self._acknowledged(calls[call], call, length):
                    return
                if spare:
                    node = spare.pop()
                    another = self._send(node, length)
                    calls[another] = node
                    waiting.append(another)

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
        except ray.exceptions.RayError:  # the engine finds out by itself that the node is gone
            pass
        self._lengths.pop(node.id, None)
        self._current.discard(node.id)
        return False
