"""TensorBoard event files in the run folder, against environment steps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from esker.algorithms.observer import Returns, Row
from esker.config.build import to_toml
from esker.logs.backend import BackendError
from esker.logs.metrics import FITNESS, metrics
from esker.runs.folder import RunFolder

BINS = 32


class TensorBoard:
    """Scalars and the histogram of returns; look with `tensorboard --logdir RUN`.

    One record a generation, written at once: torch's writer has a thread that dies with a traceback on a full disk.
    """

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> str | None:
        """Open a new event file, and add those rows that no earlier one holds."""
        try:
            from torch.utils.tensorboard import summary
        except ImportError as error:
            raise BackendError("TensorBoard is not installed; pip install 'esker[tensorboard]'") from error
        self.summary: Any = summary
        self.algo = config.algo
        where = folder.path / "tensorboard"
        last = last_step(where)
        self._open(where)
        if last is None:
            text = "".join(f"    {line}\n" for line in to_toml(config).splitlines())  # four spaces: a code block
            self._write(0, [self.summary.text("config", text)])
        for row in rows:
            if last is None or row["env_steps"] > last:
                self.generation(row, None)
        return f"look with: tensorboard --logdir {folder.path}"

    def generation(self, row: Row, returns: Returns | None) -> None:
        """Add a row's numbers, at its environment steps."""
        parts = [self.summary.scalar(name, value) for name, value in metrics(row, self.algo).items()]
        if returns is not None and np.isfinite(returns).any():
            parts.append(self.summary.histogram(FITNESS, returns[np.isfinite(returns)], BINS))
        self._write(row["env_steps"], parts)

    def end(self, reason: str) -> None:
        """Close the file."""
        self.file.close()

    def _open(self, where: Path) -> None:
        from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
        from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

        where.mkdir(exist_ok=True)
        self.file = (where / f"events.out.tfevents.{int(time.time())}.esker").open("ab", buffering=0)
        self.records = RecordWriter(self.file)
        self.event = Event
        self.records.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())

    def _write(self, step: int, parts: list[Any]) -> None:
        event = self.event(wall_time=time.time(), step=step)
        for part in parts:
            event.summary.MergeFrom(part)
        self.records.write(event.SerializeToString())


def last_step(folder: Path) -> int | None:
    """The last environment step that a folder's event files hold."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader  # type: ignore[import-untyped]
    from tensorboard.compat.proto.event_pb2 import Event

    steps = [
        event.step
        for file in sorted(folder.glob("events.out.tfevents.*"))
        for event in map(Event.FromString, RawEventFileLoader(str(file)).Load())
        if event.HasField("summary")
    ]
    return max(steps, default=None)
