"""Episodes in slots on a device: thousands of worlds are stepped together, and one that ends takes the next member.

What the slots of a worker do in NumPy is done here with tensors that never leave the device: policies, normalisation,
returns and observation statistics. The CPU keeps what it knows by counting: which item is in which row, and since when.
Where no episode can end before its limit, the two never wait for each other.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from esker.errors import RunError, UsageError
from esker.noise.device import DevicePopulation
from esker.noise.table import NoiseTable
from esker.policies.device import open_rows
from esker.policies.normalizer import CLIP
from esker.policies.torch_heads import torch_head
from esker.system.cuda_graph import Graphed
from esker.system.torch_threads import one_torch_thread
from esker.tasks.addresses import counts_observations, members_of, reset_seeds
from esker.tasks.episodes import Episodes
from esker.tasks.task import Board, Give, Job, Result, Take
from esker.worlds.device import open_world
from esker.worlds.worlds import describe_error

IDLE = -1


@dataclass(frozen=True)
class DeviceEpisodes:
    """Episodes whose worlds and policies are on a device."""

    episodes: Episodes
    world: str
    device: str
    slots: int

    def describe(self, generation: int, item: int) -> str:
        """Environment, member and seed of an item."""
        return self.episodes.describe(generation, item)

    def open(self, table: NoiseTable | None, board: Board) -> DeviceSlots:
        """Make worlds and rows of policies. Too many for the device's memory raise torch.OutOfMemoryError."""
        return DeviceSlots(self, table, board)


class DeviceSlots:
    """The slots of one device."""

    def __init__(self, task: DeviceEpisodes, table: NoiseTable | None, board: Board) -> None:
        self.task, self.board = task.episodes, board
        self.device, rows = torch.device(task.device), task.slots
        self.stream: Any = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.tick = self.steps = 0
        self.items: NDArray[np.int64] = np.full(rows, IDLE)
        self.begun: NDArray[np.int64] = np.zeros(rows, dtype=np.int64)
        self.counted: NDArray[np.bool_] = np.zeros(rows, dtype=np.bool_)
        with self._on_device():
            self._make(task, table, rows)

    def _make(self, task: DeviceEpisodes, table: NoiseTable | None, rows: int) -> None:
        episodes, device = task.episodes, self.device
        noise = episodes.noise(table)
        self.worlds = open_world(task.world, episodes.environment, rows, device)
        first = self.worlds.reset(torch.arange(rows, device=device), np.zeros(rows, dtype=np.int64))
        if tuple(first.shape) != (rows, *episodes.network.input_shape):
            expected = episodes.network.input_shape
            raise UsageError(
                f"world {task.world} has observations of shape {tuple(first.shape[1:])}; "
                f"{episodes.environment.name} has {expected}"
            )
        self.observations = first.clone()
        self.population = DevicePopulation(noise, device)
        self.policies = open_rows(episodes.network, noise, rows, device)
        self.head = torch_head(episodes.head).to(device)
        size, double = episodes.statistics_size, torch.float64
        self.normalizer = torch.zeros(2, size, dtype=double, device=device)
        self.totals, self.signs, self.active = torch.zeros(3, rows, dtype=double, device=device).unbind()
        self.moments = torch.zeros(2, rows, size, dtype=double, device=device)  # sums of observations, of their squares
        self._act = Graphed(self._actions, device)
        self.worlds.step(self._act()[0])

    @contextlib.contextmanager
    def _on_device(self) -> Iterator[None]:
        """Everything on one stream; on the CPU on one thread, as elsewhere."""
        where = torch.cuda.stream(self.stream) if self.stream else one_torch_thread()
        with torch.no_grad(), where:
            yield

    def evaluate(self, job: Job, take: Take, give: Give) -> int:
        """Evaluate items until `take` ends it; returns how many steps were dropped."""
        with self._on_device():
            self._begin(job)
            try:
                return self._evaluate(take, give)
            finally:
                self._idle(np.flatnonzero(self.items != IDLE))

    def _begin(self, job: Job) -> None:
        self.job = job
        self.cap = min(job.episode_cap or math.inf, self.worlds.limit or math.inf)
        self.population.begin(job.population)
        self.policies.begin(self.population)
        if job.normalizer is not None:
            self.normalizer.copy_(torch.from_numpy(np.stack([job.normalizer.mean, job.normalizer.inverse_std])))

    def _evaluate(self, take: Take, give: Give) -> int:
        while True:
            free = np.flatnonzero(self.items == IDLE)
            busy = len(self.items) - len(free)
            items = take(len(free), busy)
            if items is None:
                return int((self.tick - self.begun[self.items != IDLE]).sum())
            if items:
                self._start(free[: len(items)], np.array(items, dtype=np.int64))
            elif not busy:
                return 0
            ended = self._step(busy + len(items))
            if len(ended):
                give(self._results(ended))
                self._idle(ended)

    def _start(self, rows: NDArray[np.int64], items: NDArray[np.int64]) -> None:
        """Begin the items' episodes in some rows."""
        task, generation = self.task, self.job.generation
        members, episodes = members_of(task, items)
        chosen = torch.from_numpy(rows).to(self.device)
        try:
            self.observations[chosen] = self.worlds.reset(chosen, reset_seeds(task, generation, members, episodes))
        except Exception as error:
            raise RunError(f"{task.describe(generation, int(items[0]))}: {describe_error(error)}") from error
        self.policies.load(chosen, members)
        for tensor in (self.totals, self.signs):
            tensor[chosen] = 0
        self.moments[:, chosen] = 0
        self.active[chosen] = 1
        self.items[rows], self.begun[rows] = items, self.tick
        self.counted[rows] = counts_observations(task, generation, members, episodes)
        self._note_rows()

    def _note_rows(self) -> None:
        """What the CPU knows of the rows, after it changed."""
        busy = self.items != IDLE
        self._due = int(self.begun[busy].min()) + self.cap if busy.any() else math.inf
        self._counting = torch.from_numpy(np.flatnonzero(self.counted & busy)).to(self.device)

    def _step(self, busy: int) -> NDArray[np.int64]:
        """One step of all rows; returns those whose episode ended."""
        self._count()
        actions, spoiled = self._act()
        try:
            observations, rewards, terminated = self.worlds.step(actions)
        except Exception as error:
            where = self.task.describe(self.job.generation, int(self.items[self.items != IDLE][0]))
            raise RunError(f"{where}: {describe_error(error)}") from error
        self.observations.copy_(observations)
        self._pay(rewards, spoiled)
        self.tick += 1
        self.steps += busy
        self.board[0] = self.steps
        over = None if terminated is None else terminated.cpu().numpy()  # waits for the device
        if over is None and self.tick < self._due:
            return np.empty(0, dtype=np.int64)
        late = self.tick - self.begun >= self.cap
        return np.flatnonzero((self.items != IDLE) & (late if over is None else late | over))

    def _count(self) -> None:
        """Add the observations of episodes that count to their sums."""
        if len(self._counting):
            seen = self.observations[self._counting].double()
            self.moments[:, self._counting] += torch.stack([seen, seen * seen])

    def _actions(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Actions of all rows, and NaN for the return of a row whose outputs are not finite: 0·∞ is not a number."""
        inputs = self.observations
        if self.task.statistics_size:
            scaled = (inputs.double() - self.normalizer[0]) * self.normalizer[1]
            inputs = scaled.float().clamp(-CLIP, CLIP)
        outputs = self.policies.forward(inputs.float())
        return self.head(torch.nan_to_num(outputs)), 0.0 * outputs.sum(dim=1)

    def _pay(self, rewards: torch.Tensor, spoiled: torch.Tensor) -> None:
        paid = rewards.double()
        if self.task.sign_fitness:
            self.signs += self.active * torch.sign(paid - self.task.survival_bonus)
        self.totals += torch.where(self.active > 0, paid + spoiled, 0.0)

    def _results(self, rows: NDArray[np.int64]) -> list[Result]:
        """The results of the episodes in some rows."""
        chosen = torch.from_numpy(rows).to(self.device)
        totals, signs = torch.stack([self.totals, self.signs])[:, chosen].tolist()
        counted = rows[self.counted[rows]]
        moments = self.moments[:, torch.from_numpy(counted).to(self.device)].cpu().numpy().transpose(1, 0, 2)
        statistics = dict(zip(counted.tolist(), moments, strict=True))
        lengths = (self.tick - self.begun[rows]).tolist()
        results = []
        for row, item, total, sign, length in zip(
            rows.tolist(), self.items[rows].tolist(), totals, signs, lengths, strict=True
        ):
            if not math.isfinite(total):
                why = f"the return of the episode is {total}: a reward, an observation or an action was not finite"
                results.append(Result(item, math.nan, math.nan, length, None, why))
                continue
            results.append(Result(item, self.task.fitness(total, sign, length), total, length, statistics.get(row)))
        return results

    def _idle(self, rows: NDArray[np.int64]) -> None:
        """These rows are empty until they are started again."""
        self.items[rows] = IDLE
        self.active[torch.from_numpy(rows).to(self.device)] = 0
        self._note_rows()

    def close(self) -> None:
        """Nothing to close: memory is all they hold."""
