"""Slots on a device: thousands of worlds are stepped together, and one that ends takes its run's next member.

What the slots of a worker do in NumPy is done here with tensors that never leave the device: policies, normalisation,
returns and observation statistics. The CPU keeps what it knows by counting: which item is in which row, and until when.
Where no episode can end before its limit, the two never wait for each other. Runs that differ in their seeds share the
device: each has a block of rows of its own, so that no run's numbers depend on when another's are ready.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from esker.errors import RunError, UsageError
from esker.noise.address import Purpose, keys
from esker.noise.device import DevicePopulation
from esker.noise.device_actions import ActionNoise
from esker.noise.table import NoiseTable
from esker.policies.device import open_rows
from esker.policies.heads import BoxHead
from esker.policies.normalizer import CLIP
from esker.policies.torch_heads import torch_head
from esker.system.cuda_graph import Graphed
from esker.system.torch_threads import one_torch_thread
from esker.tasks.addresses import counts_observations, members_of, reset_seeds
from esker.tasks.episodes import Episodes
from esker.tasks.task import Job, Result, is_fitness, unusable
from esker.worlds.device import open_world
from esker.worlds.worlds import describe_error

IDLE = -1
NEVER = np.iinfo(np.int64).max // 2  # a tick may be added to it
Numbers = NDArray[np.int64]


class DeviceSlots:
    """The slots of one device: `each` rows for every run. Too many for its memory raise torch.OutOfMemoryError."""

    def __init__(
        self,
        runs: Sequence[tuple[Episodes, NoiseTable | None]],
        world: str,
        device: str,
        each: int,
        deterministic: bool = False,
    ) -> None:
        self.tasks, self.each = [task for task, _ in runs], each
        self.task = self.tasks[0]  # they differ in their seeds only
        self.device, self.rows = torch.device(device), each * len(runs)
        self.stream: Any = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.tick = self.steps = self.busy = 0
        self.jobs: list[Job | None] = [None for _ in runs]
        self.items: Numbers = np.full(self.rows, IDLE)
        self.begun: Numbers = np.zeros(self.rows, dtype=np.int64)
        self.until: Numbers = np.full(self.rows, NEVER)  # the tick at which an episode is truncated
        self.counted: NDArray[np.bool_] = np.zeros(self.rows, dtype=np.bool_)
        with self.on_device():
            noises = [task.noise(table) for task, table in runs]
            self.populations = [DevicePopulation(noise, self.device) for noise in noises]
            self.policies = open_rows(self.task.network, noises[0], self.rows, self.device, len(runs))
            self._make(world, deterministic)

    def _make(self, world: str, deterministic: bool) -> None:
        task, device, rows = self.task, self.device, self.rows
        self.worlds = open_world(world, task.environment, rows, device, deterministic)
        first = self.worlds.reset(torch.arange(rows, device=device), np.zeros(rows, dtype=np.int64))
        if tuple(first.shape) != (rows, *task.network.input_shape):
            raise UsageError(
                f"world {world} has observations of shape {tuple(first.shape[1:])}; "
                f"{task.environment.name} has {task.network.input_shape}"
            )
        self.observations = first.clone()
        self.head = torch_head(task.head).to(device)
        size = task.head.size if isinstance(task.head, BoxHead) else 0
        self.action_noise = ActionNoise(rows, size, device) if task.action_noise and size else None
        size, double = task.statistics_size, torch.float64
        self.normalizers = torch.zeros(2, len(self.tasks), 1, size, dtype=double, device=device)
        self.totals, self.signs, self.active = torch.zeros(3, rows, dtype=double, device=device).unbind()
        self.moments = torch.zeros(2, rows, size, dtype=double, device=device)  # sums of observations, of their squares
        self.counting = torch.zeros(rows, 1, dtype=torch.bool, device=device)  # whose observations enter them
        self.rewards = torch.zeros(rows, dtype=double, device=device)
        self.spoiled = torch.zeros(rows, device=device)  # NaN where outputs are not finite: 0·∞ is not a number
        self._act = Graphed(self._actions, device)
        self.worlds.step(self._act())
        self._account = Graphed(self._pay, device)
        self.moments.zero_()
        self._note_rows()

    @contextlib.contextmanager
    def on_device(self) -> Iterator[None]:
        """Everything on one stream; on the CPU on one thread, as elsewhere."""
        where = torch.cuda.stream(self.stream) if self.stream else one_torch_thread()
        with torch.no_grad(), where:
            yield

    def begin(self, block: int, job: Job) -> None:
        """Start a generation of a run; nothing of it may be under way."""
        self.jobs[block] = job
        self.populations[block].begin(job.population)
        self.policies.begin(block, self.populations[block])
        if job.normalizer is not None:
            frozen = np.stack([job.normalizer.mean, job.normalizer.inverse_std])
            self.normalizers[:, block, 0] = torch.from_numpy(frozen).to(self.device)
        starts = getattr(self.worlds, "starts", None)
        if starts is not None:
            starts.expect(self._seeds_after(block, job))

    def _seeds_after(self, block: int, job: Job) -> Numbers:
        """The seeds of the next generation's episodes."""
        task = self.tasks[block]
        items = np.arange(task.center_episodes + len(job.population) * task.episodes_per_member)
        return reset_seeds(task, job.generation + 1, *members_of(task, items))

    def free(self, block: int) -> Numbers:
        """A run's rows that are empty."""
        rows = slice(block * self.each, (block + 1) * self.each)
        return np.flatnonzero(self.items[rows] == IDLE) + block * self.each

    def start(self, wanted: Mapping[int, Sequence[int]]) -> None:
        """Begin the episodes of some runs' items, each in a row that is free."""
        rows: list[Numbers] = []
        seeds: list[Numbers] = []
        for block, chosen in wanted.items():
            items = np.array(chosen, dtype=np.int64)
            rows.append(self.free(block)[: len(items)])
            seeds.append(self._load(block, rows[-1], items))
        every = np.concatenate(rows)
        at = torch.from_numpy(every).to(self.device)
        try:
            self.observations[at] = self.worlds.reset(at, np.concatenate(seeds))
        except Exception as error:
            raise RunError(f"{self._describe(int(every[0]))}: {describe_error(error)}") from error
        for tensor in (self.totals, self.signs):
            tensor[at] = 0
        self.moments[:, at] = 0
        self.active[at] = 1
        self._note_rows()

    def _load(self, block: int, rows: Numbers, items: Numbers) -> Numbers:
        """Put a run's items into rows; returns the seeds of their episodes."""
        task, job = self.tasks[block], self.jobs[block]
        assert job is not None
        members, episodes = members_of(task, items)
        self.policies.load(self.populations[block], torch.from_numpy(rows).to(self.device), members)
        limit, cap = self.worlds.limit or NEVER, job.episode_cap or NEVER
        self.items[rows], self.begun[rows] = items, self.tick
        self.until[rows] = self.tick + np.where(members < 0, limit, min(limit, cap))  # the centre shows whole episodes
        self.counted[rows] = counts_observations(task, job.generation, members, episodes)
        if self.action_noise is not None:
            drawn = keys(task.seed, Purpose.ACTION_NOISE, job.generation, np.maximum(members, 0), episodes)
            scales = np.where(members < 0, 0.0, task.action_noise).astype(np.float32)  # none for the centre
            self.action_noise.start(torch.from_numpy(rows).to(self.device), drawn, scales)
        return reset_seeds(task, job.generation, members, episodes)

    def _note_rows(self) -> None:
        """What the CPU knows of the rows, after it changed."""
        busy = self.items != IDLE
        self.busy = int(busy.sum())
        self._due = int(self.until[busy].min(initial=NEVER))
        self.counting.copy_(torch.from_numpy(self.counted & busy)[:, None])

    def step(self) -> dict[int, list[Result]]:
        """One step of all rows; returns the results of the episodes that ended, by run. Their rows are free then."""
        actions = self._act()
        try:
            observations, rewards, terminated = self.worlds.step(actions)
        except Exception as error:
            raise RunError(f"{self._describe(int(np.argmax(self.items != IDLE)))}: {describe_error(error)}") from error
        self.observations.copy_(observations)
        self.rewards.copy_(rewards)
        self._account()
        self.tick += 1
        self.steps += self.busy
        over = None if terminated is None else terminated.cpu().numpy()  # waits for the device
        if over is None and self.tick < self._due:
            return {}
        late = self.tick >= self.until
        ended = np.flatnonzero((self.items != IDLE) & (late if over is None else late | over))
        return self._results(ended) if len(ended) else {}

    def _actions(self) -> torch.Tensor:
        """Actions of all rows. The observations of episodes that count are added to their sums."""
        inputs = self.observations
        if self.task.statistics_size:
            seen = torch.where(self.counting, inputs.double(), 0.0)
            self.moments[0] += seen
            self.moments[1] += seen * seen
            blocks = inputs.view(len(self.tasks), self.each, -1).double()
            scaled = (blocks - self.normalizers[0]) * self.normalizers[1]
            inputs = scaled.float().clamp(-CLIP, CLIP).flatten(0, 1)
        outputs = self.policies.forward(inputs.float())
        self.spoiled.copy_(0.0 * outputs.sum(dim=1))
        return self._bounded(torch.nan_to_num(outputs))

    def _bounded(self, outputs: torch.Tensor) -> torch.Tensor:
        """Actions from outputs, with noise if there is any: before clipping, as in a worker."""
        head: Any = self.head
        actions: torch.Tensor
        if self.action_noise is None:
            actions = head(outputs)
            return actions
        noise = self.action_noise.draw()
        if head.mode == "direct":
            actions = head(outputs + noise)
            return actions
        actions = head(outputs)
        noisy = actions.flatten(1) + noise
        return torch.minimum(torch.maximum(noisy, head.low), head.high).view_as(actions)

    def _pay(self) -> None:
        """Add the rewards of a step to the returns of episodes under way."""
        if self.task.sign_fitness:
            self.signs += self.active * torch.sign(self.rewards - self.task.survival_bonus)
        self.totals += torch.where(self.active > 0, self.rewards + self.spoiled, 0.0)

    def _results(self, rows: Numbers) -> dict[int, list[Result]]:
        """The results of the episodes in some rows, which become free."""
        chosen = torch.from_numpy(rows).to(self.device)
        totals, signs = torch.stack([self.totals, self.signs])[:, chosen].tolist()
        counted = rows[self.counted[rows]]
        moments = self.moments[:, torch.from_numpy(counted).to(self.device)].cpu().numpy().transpose(1, 0, 2)
        statistics = dict(zip(counted.tolist(), moments, strict=True))
        columns = (rows.tolist(), self.items[rows].tolist(), totals, signs, (self.tick - self.begun[rows]).tolist())
        results: dict[int, list[Result]] = {}
        for row, item, total, sign, length in zip(*columns, strict=True):
            if is_fitness(total):
                result = Result(item, self.task.fitness(total, sign, length), total, length, statistics.get(row))
            else:
                result = Result(item, math.nan, math.nan, length, None, unusable(total))
            results.setdefault(row // self.each, []).append(result)
        self._idle(rows)
        return results

    def drop(self, block: int) -> int:
        """Empty a run's rows; returns how many steps were taken there in vain."""
        rows = np.setdiff1d(np.arange(block * self.each, (block + 1) * self.each), self.free(block))
        if len(rows):
            self._idle(rows)
        return int((self.tick - self.begun[rows]).sum())

    def _idle(self, rows: Numbers) -> None:
        """These rows are empty until they are started again."""
        self.items[rows] = IDLE
        self.active[torch.from_numpy(rows).to(self.device)] = 0
        self._note_rows()

    def _describe(self, row: int) -> str:
        """Where a row's work happens, for messages."""
        block = row // self.each
        job = self.jobs[block]
        return self.tasks[block].describe(job.generation if job else 0, max(int(self.items[row]), 0))
