"""What the cluster tests share: a run on the cluster, the same run undisturbed, and waiting."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SMALL: dict[str, Any] = {
    "preset": None,
    "population": 20,
    "hidden": (8,),
    "center_episodes": 2,
    "slots": 4,
    "noise": "counter",
    "checkpoint_every": 3,
}


class Training:
    """A run on the cluster, trained in a thread, with its coordinator at hand."""

    base = SMALL

    def __init__(self, path: Path, env: str, **options: Any) -> None:
        self.path = path
        self.hold = path.with_suffix(".hold")  # while this file is there, no episode of `make_slow` goes on
        self.rows: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.error: BaseException | None = None
        if env.endswith(":make_slow"):
            options["env_kwargs"] = options.get("env_kwargs", {}) | {"hold": str(self.hold)}
        self._options = self.base | options | {"engine": "ray", "run_dir": str(path)}
        self._thread = threading.Thread(target=self._train, args=(env,), daemon=True)
        self._thread.start()

    def _train(self, env: str) -> None:
        import esker

        try:
            esker.train(env, observer=self, **self._options)
        except BaseException as error:
            self.error = error

    def begin(self, config: Any, folder: Any, rows: list[Any]) -> None: ...
    def end(self, reason: str) -> None: ...

    def generation(self, row: dict[str, Any], returns: Any = None) -> None:
        self.rows.append(row)

    def note(self, text: str) -> None:
        self.notes.append(text)

    @property
    def coordinator(self) -> Any:
        import ray

        return ray.get_actor(self.path.name, namespace="esker")

    def pid(self) -> int:
        import ray

        return int(ray.get(self.coordinator.pid.remote(), timeout=60))

    def engines(self) -> list[tuple[str, int]]:
        """The node and the process of every engine of the run."""
        import ray

        return list(ray.get(self.coordinator.engines.remote(), timeout=60))

    def other_engine(self) -> tuple[str, int]:
        """The node and the process of an engine that is not on the coordinator's node."""
        import ray

        home = ray.get(self.coordinator.node.remote(), timeout=60)
        wait_for(lambda: any(node != home for node, _ in self.engines()))
        return next((node, pid) for node, pid in self.engines() if node != home)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Everything stands still in the middle of a generation's episodes."""
        self.hold.touch()
        before = -1
        while before < (before := committed(self.path)):
            time.sleep(1)  # until what was on its way to be committed is
        try:
            yield
        finally:
            self.hold.unlink()

    def reach(self, generation: int) -> None:
        """Wait until the viewer has seen `generation` generations."""
        wait_for(lambda: len(self.rows) >= generation or not self._thread.is_alive())
        assert self.error is None, self.error

    def finish(self, within: float = 300) -> bytes:
        """Wait for the end; returns the state's bits."""
        self._thread.join(within)
        assert not self._thread.is_alive(), (len(self.rows), self.notes)
        if self.error is not None:
            raise self.error
        assert [row["generation"] for row in self.rows] == list(range(len(self.rows)))
        return bits(self.path)


def committed(path: Path) -> int:
    """How many generations are facts."""
    from esker.runs.facts import read

    return sum(1 for _ in read(path / "facts"))


def bits(path: Path) -> bytes:
    """The newest state of a run, as bytes."""
    return (path / "checkpoints" / (path / "latest").read_text().strip() / "state.safetensors").read_bytes()


def undisturbed(path: Path, env: str, **options: Any) -> bytes:
    """The state that the same request gives inside one process, without pauses."""
    import esker

    hurried = {"env_kwargs": options["env_kwargs"] | {"pause": 0.0}} if "pause" in options.get("env_kwargs", {}) else {}
    esker.train(env, run_dir=str(path), workers=0, quiet=True, **(SMALL | options | hurried))
    return bits(path)


def wait_for(condition: Callable[[], bool], within: float = 180, every: float = 0.02) -> None:
    until = time.monotonic() + within
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(every)


def during(action: Callable[[], None], after: float) -> threading.Thread:
    """Do something while the test runs."""

    def act() -> None:
        time.sleep(after)
        action()

    thread = threading.Thread(target=act)
    thread.start()
    return thread
