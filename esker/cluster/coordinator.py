"""The coordinator: a detached, named actor that runs the training loop and outlives the process that started it.

When it or its node dies, Ray starts it again elsewhere, and it continues at the first uncommitted generation: from its run
folder where it finds it, otherwise from the newest copy that a surviving node holds. The coordinator of an algorithm with
gradients stays on one machine, where its run folder with the replay is, and continues from the newest snapshot there.
"""

from __future__ import annotations

import gc
import os
import platform
import sys
import threading
import traceback
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import cloudpickle

from esker.algorithms import registry
from esker.algorithms.algorithm import Engine, Site
from esker.algorithms.observer import Row
from esker.cluster import copies
from esker.cluster.recovery import copies_held, lock, newest_files
from esker.cluster.replicated import ReplicatedFolder
from esker.cluster.shared_update import share_update
from esker.engines.ray import RayEngine
from esker.engines.roster import NAMESPACE
from esker.errors import RunError, UsageError, named_line
from esker.logs.backends import with_backends
from esker.runs import runner
from esker.runs.folder import RunFolder
from esker.runs.session import Session, resume
from esker.system import clock, disk

LINGER = 120.0  # seconds that a finished coordinator waits for viewers
FILES_WITHIN = 60.0  # seconds for a copy of the run folder to be found, or sent
LOOK_EVERY = 5.0


@dataclass(frozen=True)
class Request:
    """What a coordinator is made of; small, because Ray keeps it for restarts."""

    name: str
    path: str
    environment: bytes  # as `submit.pack` makes them, loaded once `modules` is in place
    modules: list[str]
    notices: list[str]


@dataclass(frozen=True)
class End:
    """How a run ended; `text` is the status, or what went wrong."""

    kind: Literal["finished", "interrupted", "failed", "refused"]
    text: str


@dataclass(frozen=True)
class News:
    """What a viewer has not seen yet. `life` numbers the coordinator's lives; notes are counted within one."""

    life: int
    rows: list[Row]
    notes: list[str]
    end: End | None


@dataclass(frozen=True)
class Summary:
    """A run of the cluster in one line."""

    name: str
    env: str
    algo: str
    generation: int
    center_return: float | None
    nodes: int
    workers: int
    status: str
    path: str
    host: str


class Coordinator:
    """Runs the loop in a thread; its methods answer viewers. It is the observer of its own run."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._changed = clock.Condition()
        self._files: dict[str, bytes] | None = None
        self._config: Any = None
        self._rows: list[Row] = []
        self._notes: list[str] = []
        self._end: End | None = None
        self._life = clock.time_ns()
        self._engine: Any = None
        self._stopping = False
        self._loop = clock.Thread(target=self._run, daemon=True, name="esker-coordinator")
        self._loop.start()

    # What viewers call

    def start_from(self, files: dict[str, bytes]) -> None:
        """The run folder as its starter has it, for a coordinator that finds none."""
        with self._changed:
            self._files = files
            self._changed.notify_all()

    def config(self, patience: float) -> Any:
        """The resolved configuration, once it is known."""
        with self._changed:
            self._changed.wait_for(lambda: self._config is not None or self._end is not None, patience)
            return self._config

    def follow(self, generation: int, life: int, notes: int, patience: float) -> News:
        """What happened since a generation and a number of notes; waits for something to happen."""

        def unseen() -> tuple[list[Row], list[str]]:
            return self._rows[generation:], self._notes[notes if life == self._life else 0 :]

        with self._changed:
            self._changed.wait_for(lambda: any(unseen()) or self._end is not None, patience)
            rows, notices = unseen()
            return News(self._life, rows, notices, self._end)

    def stop(self) -> None:
        """Stop now; everything committed is saved."""
        with self._changed:
            again, self._stopping = self._stopping, True
            if isinstance(self._engine, RayEngine):
                self._engine.interrupt()
            elif self._engine is not None and not again and self._end is None:
                _interrupt(self._loop)

    def summary(self) -> Summary:
        """This run in one line."""
        config, rows, engine = self._config, self._rows, self._engine
        status = "starting" if config is None else "stopping" if self._stopping else "running"
        return Summary(
            self._request.name,
            config.env if config else "?",
            config.algo if config else "?",
            rows[-1]["generation"] if rows else 0,
            rows[-1]["center_return"] if rows else None,
            len(engine.nodes) if engine else 0,
            engine.workers if engine else 0,
            self._end.kind if self._end else status,
            self._request.path,
            platform.node(),
        )

    def files(self) -> dict[str, bytes]:
        """The run folder's essentials, for a viewer on another machine; none where a restarted coordinator has no folder."""
        path = Path(self._request.path)
        return {} if copies.facts_length(path) is None else copies.essentials(RunFolder(path))

    def facts_length(self) -> int | None:
        """How far the run folder is, in bytes of facts."""
        return copies.facts_length(Path(self._request.path))

    def pid(self) -> int:
        """This process."""
        return os.getpid()

    def node(self) -> str:
        """The node this process is on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def engines(self) -> list[tuple[str, int]]:
        """The nodes in use, by id, and the process of the engine on each."""
        return [(node.id, node.pid) for node in self._engine.nodes] if self._engine else []

    # What the loop calls

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> None:
        """The run starts or resumes."""
        with self._changed:
            self._config, self._rows = config, list(rows)
            self._changed.notify_all()

    def generation(self, row: Row, returns: Any = None) -> None:
        """A generation was committed."""
        with self._changed:
            self._rows.append(row)
            self._changed.notify_all()

    def note(self, text: str) -> None:
        """A notice for the user."""
        with self._changed:
            self._notes.append(text)
            self._changed.notify_all()

    def end(self, reason: str) -> None:
        """The loop is over; `_run` says how it ended."""

    # The loop

    def _run(self) -> None:
        try:
            end = End("finished", self._train())
        except KeyboardInterrupt as error:
            end = End("interrupted", str(error))
        except UsageError as error:
            end = End("refused", str(error))
        except RunError as error:
            end = End("failed", str(error))
        except BaseException:
            end = End("failed", traceback.format_exc())
        with self._changed:
            self._end = end
            self._changed.notify_all()
        clock.sleep(LINGER)
        _kill(self._request.name)

    def _train(self) -> str:
        request = self._request
        sys.path += [path for path in request.modules if path not in sys.path and os.path.isdir(path)]
        folder, epoch = self._recover()
        if (ended := self._former_end(folder)) is not None:
            raise ended
        folder.check_trust(True)  # the user who started it has decided that
        algorithm, config = registry.find(folder.algo), folder.config(registry.options_of)
        environment = _unpack(request.environment)
        session = resume(folder, algorithm, config, environment, list(request.notices))
        gc.freeze()  # torch's and Ray's modules are not searched again: that stops a generation of thousands for 0.15 s
        observer = with_backends(self, config.log)
        return runner.run(session, observer, open_engine=lambda: self._open(session, folder, epoch)).reason

    def _open(self, session: Session, folder: ReplicatedFolder, epoch: int) -> Engine:
        """The run's engines, which outlive this process where its facts do."""
        import ray

        site = Site(folder.path, folder.about()["fingerprint"], self.note, self._request.name, epoch)
        engine = session.algorithm.open(session.state, site)
        with self._changed:
            self._engine = getattr(engine, "pool", engine)
            stopping = self._stopping
        if session.algorithm.commits_facts:
            share_update(session.state, self._engine)
            folder.replicate_to(self._engine, epoch, ray.get_runtime_context().get_node_id(), self.note)
            if stopping:
                self._engine.interrupt()
        elif stopping:
            engine.close()
            raise KeyboardInterrupt
        return engine

    def _former_end(self, folder: RunFolder) -> BaseException | None:
        """How a former life of this coordinator had ended the run, before it died with viewers attached."""
        import ray

        if not ray.get_runtime_context().was_current_actor_reconstructed:
            return None
        status, _, reason = (folder.status_file.read_text() if folder.status_file.exists() else "").partition(": ")
        more = f"continue with: esker resume {folder.path}"
        if status == "failed":
            return RunError(f"{reason}\nnothing committed is lost; {more}")
        return KeyboardInterrupt(f"the run had been interrupted; {more}") if status == "interrupted" else None

    def _recover(self) -> tuple[ReplicatedFolder, int]:
        """The newest of: the folder on this disk, copies on nodes, what the starter sent; and a new epoch."""
        folder = ReplicatedFolder(Path(self._request.path))
        disk.make_folder(folder.checkpoints)
        lock(folder)
        here, until = copies.facts_length(folder.path), clock.monotonic() + FILES_WITHIN
        held, epoch = copies_held(self._request.name)
        files = newest_files(held, longer_than=here or 0)
        while files is None and here is None and (files := self._files_sent()) is None:
            if clock.monotonic() > until:
                raise RunError("the run folder is lost: no disk and no surviving node has it")
            held, epoch = copies_held(self._request.name)
            files = newest_files(held, longer_than=0)
        if files is not None and here is None and files is not self._files:
            self.note("the run folder is not on this node: it was restored from another node's copy")
        if files is not None:
            copies.write(folder.path, files)
        return folder, epoch

    def _files_sent(self) -> dict[str, bytes] | None:
        """What the starter sent, once it has come; it is waited for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._files is not None, LOOK_EVERY)
            return self._files


def _unpack(data: bytes) -> Any:
    """What members are evaluated on. What this machine cannot import raises UsageError."""
    try:
        return cloudpickle.loads(zlib.decompress(data))
    except ImportError as error:
        why = f"{named_line(error)}; install it on every node, or send its folder with working_dir"
        raise UsageError(f"the coordinator on node {platform.node()} cannot start: {why}") from error


def _interrupt(thread: threading.Thread) -> None:
    """Raise KeyboardInterrupt in a thread as Ctrl-C does in the main one: at its next step, whatever it is doing."""
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt))


def _kill(name: str) -> None:
    import ray

    ray.kill(ray.get_actor(name, namespace=NAMESPACE), no_restart=True)
