"""TensorBoard event files in the run folder, against environment steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from esker.algorithms.loop import Returns, Row
from esker.configure import to_toml
from esker.logs.backends import BackendError
from esker.logs.metrics import FITNESS, metrics
from esker.runs.folder import RunFolder


class TensorBoard:
    """Scalars and the histogram of returns; look with `tensorboard --logdir RUN`."""

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> str | None:
        """Open a new event file, and add those rows that no earlier one holds."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise BackendError("TensorBoard is not installed; pip install 'esker[tensorboard]'") from error
        self.algo = config.algo
        where = folder.path / "tensorboard"
        last = last_step(where)
        self.writer = SummaryWriter(str(where), flush_secs=10)
        if last is None:
            self.writer.add_text("config", "".join(f"    {line}\n" for line in to_toml(config).splitlines()), 0)
        for row in rows:
            if last is None or row["env_steps"] > last:
                self.generation(row, None)
        self.writer.flush()
        return f"look with: tensorboard --logdir {folder.path}"

    def generation(self, row: Row, returns: Returns | None) -> None:
        """Add a row's numbers, at its environment steps."""
        step = row["env_steps"]
        for name, value in metrics(row, self.algo).items():
            self.writer.add_scalar(name, value, step)
        if returns is not None and np.isfinite(returns).any():
            self.writer.add_histogram(FITNESS, returns[np.isfinite(returns)], step)

    def end(self, reason: str) -> None:
        """Write what is left."""
        self.writer.close()


def last_step(folder: Path) -> int | None:
    """The last environment step that a folder's event files hold."""
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader  # type: ignore[import-untyped]
    from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]

    steps = [
        event.step
        for file in sorted(folder.glob("events.out.tfevents.*"))
        for event in map(Event.FromString, RawEventFileLoader(str(file)).Load())
        if event.HasField("summary")
    ]
    return max(steps, default=None)
