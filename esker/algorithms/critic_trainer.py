"""The critic that trains on its own: chunk after chunk, always with the newest mean as bootstrap actor.

Its whole state comes back with every chunk and travels with the next, so a lost process costs one chunk at most.
"""

from __future__ import annotations

from esker.engines.pool import Pool
from esker.noise.address import Purpose, key
from esker.noise.directions import Vector
from esker.tasks.hybrid import HybridTask, HybridWorker
from esker.tasks.requests import Arrays, CriticDone, CriticWork, Reply


class CriticTrainer:
    """Hands out chunks of critic training. `bounded`: never more updates than there were environment steps."""

    def __init__(self, task: HybridTask, chunk: int, bounded: bool) -> None:
        self.task = task
        self.chunk = chunk
        self.bounded = bounded
        self.state: Arrays = HybridWorker(task, None, [0]).critics.state()
        self.loss: float | None = None
        self._ticket: int | None = None

    @property
    def updates(self) -> int:
        """Critic updates so far."""
        return int(self.state["critic_updates"][0])

    def due(self, training_steps: int) -> bool:
        """Whether another chunk may begin."""
        enough = training_steps - self.updates >= self.chunk if self.bounded else training_steps > 0
        return self._ticket is None and enough

    def work(self, mean: Vector, training_steps: int) -> CriticWork:
        """The next chunk."""
        where = key(self.task.seed, Purpose.CRITIC, self.updates)
        return CriticWork(mean, self.chunk, where, training_steps, self.state)

    def begin(self, pool: Pool, mean: Vector, training_steps: int) -> None:
        """Give the critic's process its next chunk, if it is idle and one is due."""
        if self.due(training_steps) and pool.idle("critic"):
            self._ticket = pool.submit(self.work(mean, training_steps), "critic")

    def hear(self, ticket: int, reply: Reply) -> bool:
        """Take a reply, if it belongs to this trainer's request."""
        if ticket != self._ticket:
            return False
        self._ticket = None
        self.done(reply)
        return True

    def done(self, reply: Reply) -> None:
        """A chunk is done."""
        assert isinstance(reply, CriticDone)
        self.state, self.loss = reply.state, reply.loss

    def load(self, arrays: Arrays) -> None:
        """Continue from a snapshot's arrays."""
        self.state = {name: array for name, array in arrays.items() if name.startswith("critic")}
