"""The engine for worlds on the CPU and policies on a device: worker processes step, this process's device acts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import cloudpickle
import numpy as np

from esker.engines.local import LocalEngine
from esker.engines.messages import Setup
from esker.engines.plan import Plan
from esker.errors import RunError, named_line
from esker.noise.table import NoiseTable
from esker.tasks.episodes import Episodes
from esker.tasks.served import ServedEpisodes
from esker.tasks.task import Job

if TYPE_CHECKING:
    from esker.engines.serving import PolicyServer

NOBODY = np.zeros(0, dtype=np.float32)  # workers need no parameters


class ServedEngine(LocalEngine):
    """A local engine whose workers ask the device for the outputs of their slots. See `PolicyServer` for memory.

    With two workers for each core, one steps while the other waits for its actions.
    """

    def __init__(
        self,
        episodes: Episodes,
        device: str,
        workers: int,
        table: NoiseTable | None = None,
        step_timeout: float | None = None,
    ) -> None:
        from esker.engines.serving import PolicyServer

        self._server: PolicyServer = PolicyServer(episodes, table, workers, device, self.wake)
        self._served = ServedEpisodes(episodes, self._server.exchange)
        super().__init__(self._served, workers, table, step_timeout, self._server.exchange.descriptors)

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Evaluate the plan. What the device raises becomes a RunError."""
        try:
            self._server.begin(job)
        except RuntimeError as error:
            raise RunError(f"{self._server.device}: {named_line(error)}") from error
        light = Job.of_center(NOBODY, job.normalizer, job.generation)
        super().evaluate(replace(light, episode_cap=job.episode_cap, only_center=job.only_center), plan)

    def close(self) -> None:
        """End the workers, then the server."""
        super().close()
        self._server.close()

    def _pump(self, plan: Plan) -> None:
        super()._pump(plan)
        if (error := self._server.error) is not None:
            raise RunError(f"policies on {self._server.device} failed: {named_line(error)}") from error

    def _watch(self, plan: Plan) -> None:
        """As every engine; the time in which a worker waits for the device is not its environment's."""
        for worker in self._workers.values():
            if self._server.groups[worker.row].waiting:
                worker.progress_at = time.monotonic()
        super()._watch(plan)

    def _setup_of(self, row: int) -> Setup:
        return replace(self._setup, task=cloudpickle.dumps(replace(self._served, worker=row)))
