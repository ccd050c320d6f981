"""A run whose loop is in the user's process, shown to the cluster: `esker attach`, `stop` and `runs --cluster` find it.

The board is a named actor next to that process. It ends with it; the run folder is what continues the run.
"""

from __future__ import annotations

import contextlib
import platform
import threading
from pathlib import Path
from typing import Any

from esker.algorithms.observer import Row
from esker.cluster import copies
from esker.cluster.coordinator import End, News, Summary
from esker.cluster.viewer import here, make_way
from esker.engines.roster import NAMESPACE
from esker.runs.folder import RunFolder


class Board:
    """Serves viewers as a coordinator does, with what the loop's process reports."""

    def __init__(self, name: str, path: str, shown: Any, rows: list[Row]) -> None:
        self._name, self._path, self._shown = name, path, shown
        self._changed = threading.Condition()
        self._rows, self._workers = list(rows), (0, 0)
        self._end: End | None = None
        self._stopping = False

    def push(self, row: Row, nodes: int, workers: int) -> bool:
        """A generation was committed; returns whether a stop was requested."""
        with self._changed:
            self._rows.append(row)
            self._workers = (nodes, workers)
            self._changed.notify_all()
            return self._stopping

    def finish(self, end: End) -> None:
        """The loop is over."""
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def config(self, patience: float) -> Any:
        """What viewers show of the configuration."""
        return self._shown

    def follow(self, generation: int, life: int, notes: int, patience: float) -> News:
        """What happened since a generation; waits for something to happen."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._rows) > generation or self._end is not None, patience)
            return News(1, self._rows[generation:], [], self._end)

    def stop(self) -> None:
        """Ask the loop to stop after the generation under way."""
        with self._changed:
            self._stopping = True

    def summary(self) -> Summary:
        """This run in one line."""
        with self._changed:
            last, (nodes, workers) = (self._rows[-1] if self._rows else None), self._workers
            status = self._end.kind if self._end else "stopping" if self._stopping else "running"
        generation, score = (last["generation"], last["center_return"]) if last else (0, None)
        shown = (self._shown.env, self._shown.algo, generation, score)
        return Summary(self._name, *shown, nodes, workers, status, self._path, platform.node())

    def files(self) -> dict[str, bytes]:
        """The run folder's essentials, for a viewer on another machine."""
        return copies.essentials(RunFolder(Path(self._path)))

    def facts_length(self) -> int | None:
        """How far the run folder is, in bytes of facts."""
        return copies.facts_length(Path(self._path))


class Published:
    """The loop's side of a board, as an observer; a cluster that does not respond never blocks the loop."""

    def __init__(self, folder: RunFolder) -> None:
        """Claim the folder's name on the cluster. One that is active already raises UsageError."""
        self.engine: Any = None  # the run's, once it is open
        self.stopping = False  # whether a stop was requested
        self._actor: Any = None
        self._reply: Any = None
        make_way(folder.path.resolve().name)

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> None:
        """Put the run on the board."""
        import ray

        path = folder.path.resolve()
        options: dict[str, Any] = {"name": path.name, "namespace": NAMESPACE, "num_cpus": 0, "max_concurrency": 16}
        made: Any = ray.remote(Board).options(**options, scheduling_strategy=here())
        self._actor = made.remote(path.name, str(path), config, rows)

    def generation(self, row: Row, returns: Any = None) -> None:
        """Show a generation, and learn whether to stop."""
        import ray

        with contextlib.suppress(Exception):
            if self._reply is not None and ray.wait([self._reply], timeout=0.5)[0]:
                self.stopping = self.stopping or ray.get(self._reply)
            nodes, workers = len(self.engine.nodes), self.engine.workers
            self._reply = self._actor.push.remote(row, nodes, workers)

    def note(self, text: str) -> None:
        """Viewers see rows only."""

    def end(self, reason: str) -> None:
        """Tell viewers how the run ended."""
        import ray

        kind, _, text = reason.partition(": ")
        with contextlib.suppress(Exception):
            ray.get(self._actor.finish.remote(End(kind, text or f"{kind} in its own process")), timeout=10)  # type: ignore[arg-type]
