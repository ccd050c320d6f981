"""Episodes in slots: a worker steps many environments with one batched forward, and a finished slot is refilled at once.

Rows 0..n-1 are the busy slots, kept gap-free: where an episode ended the next one begins, or else the last row moves in.
No environment is stepped past the end of its episode and no episode waits for another, so every step taken is a step of
some member.
"""

from __future__ import annotations

import math
import sys
import traceback
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from esker.noise.address import UINT64, Purpose, episode_seed, generator, key
from esker.noise.choice import noise_from
from esker.noise.directions import Noise
from esker.noise.lowrank import LowRankNoise
from esker.noise.population import direction_of
from esker.noise.table import NoiseTable
from esker.policies.heads import BoxHead, Head
from esker.policies.layered import Layered
from esker.policies.mlp import MLP
from esker.policies.network import Network, Rows
from esker.policies.shared_mlp import SharedMLPRows
from esker.system.blas import one_blas_thread
from esker.tasks.task import Board, Give, Job, Result, Take, address_of, is_fitness, name_of, unusable
from esker.worlds.environments import Environment
from esker.worlds.vectorizers import Vectorizer, open_worlds
from esker.worlds.worlds import Ended, Watch, describe_error

NOISE_BLOCK = 64  # action noise is drawn this many steps at a time


@dataclass(frozen=True)
class Episodes:
    """Members are evaluated by episodes of an environment.

    Items 0..k-1 are the centre's episodes; item k + m·E + e is episode e of member m.
    """

    environment: Environment
    network: Network
    head: Head
    seed: int
    antithetic: bool = True
    episodes_per_member: int = 1
    center_episodes: int = 1
    common_seeds: bool = True
    normalize: bool = True
    statistics_share: float = 1.0
    action_noise: float = 0.0
    sign_fitness: bool = False
    survival_bonus: float = 0.0
    fresh_environments: bool = False
    center_purpose: Purpose = Purpose.CENTER_EPISODE
    rank: int | None = None
    slots: int = 32
    vectorizer: Vectorizer = "gymnasium"

    @property
    def images(self) -> bool:
        """Whether observations are images, which are kept as bytes and not normalised by running statistics."""
        return len(self.network.input_shape) > 1

    @property
    def statistics_size(self) -> int:
        """How many numbers the observation statistics have."""
        return self.network.inputs if self.normalize else 0

    def with_reference(self, images: Any) -> Episodes:
        """This task with the reference batch of a network that normalises by one; None changes nothing."""
        if images is None or not isinstance(self.network, Layered):
            return self
        return replace(self, network=replace(self.network, reference=images))

    def address(self, item: int) -> tuple[int | None, int]:
        """The member (None: the centre) and the episode of an item."""
        return address_of(item, self.center_episodes, self.episodes_per_member)

    def reset_seed(self, generation: int, item: int) -> int:
        """The seed of an item's episode; the two members of a pair share it unless `common_seeds` is off."""
        member, episode = self.address(item)
        if member is None:
            return episode_seed(self.seed, self.center_purpose, generation, episode)
        who = direction_of(member, self.antithetic)[0] if self.common_seeds else member
        return episode_seed(self.seed, Purpose.EPISODE, generation, who, episode)

    def counts_observations(self, generation: int, item: int) -> bool:
        """Whether this episode's observations enter the statistics: a share of the members' episodes, by address."""
        member, episode = self.address(item)
        if member is None or not self.normalize:
            return False
        share = self.statistics_share
        return share == 1 or key(self.seed, Purpose.STATISTICS, generation, member, episode) < share * UINT64

    def fitness(self, total: float, signs: float, length: int) -> float:
        """What the strategy is told of an episode: its return, or how many rewards were above less those below."""
        return float(signs) if self.sign_fitness else total - self.survival_bonus * length

    def describe(self, generation: int, item: int) -> str:
        """Environment, member and seed of an item."""
        member, episode = self.address(item)
        seed = self.reset_seed(generation, item)
        return f"{self.environment.name}, generation {generation}, {name_of(member)}, episode {episode}, seed {seed}"

    def noise(self, table: NoiseTable | None) -> Noise:
        """The directions that members explore."""
        if self.rank is not None:
            return LowRankNoise(self.seed, tuple(self.network.shapes.values()), self.rank)
        return noise_from(table, self.seed, self.network.dimension)

    def open(self, table: NoiseTable | None, board: Board) -> Slots:
        """Build the slots; environments are made when first needed."""
        return Slots(self, self.noise(table), board)


class Slots:
    """The slots of one worker. Parallel lists, one entry a row, because this is the hot loop."""

    def __init__(self, task: Episodes, noise: Noise, board: Board) -> None:
        self.task = task
        self.noise = noise
        self.board = board
        self.tick = 0
        self.steps = 0  # of all rows together, shown on the board
        self.rows: Rows | SharedMLPRows = self._open_rows()
        self.images = task.images
        kind = np.uint8 if self.images else np.float64
        self.observations: Any = np.zeros((task.slots, *task.network.input_shape), dtype=kind)
        self.moments = np.zeros((2, task.slots, task.statistics_size))  # sums of observations and of their squares
        self.scratch = np.zeros((task.slots, task.statistics_size))
        self.inputs: Any = np.zeros((task.slots, task.statistics_size), dtype=np.float32)
        self._views: dict[int, tuple[Any, ...]] = {}
        self.items: list[int] = [0] * task.slots
        self.worlds = open_worlds(
            task.vectorizer, task.environment, task.slots, task.seed, Watch(board, self.items), task.fresh_environments
        )
        self.totals: list[float] = [0.0] * task.slots
        self.signs: list[int] = [0] * task.slots
        self.begun: list[int] = [0] * task.slots
        self.until: list[float] = [math.inf] * task.slots  # the tick that ends an episode, by a limit of its steps
        self.counted: list[bool] = [False] * task.slots  # whether an episode's observations enter the statistics
        self.action_noise: list[tuple[np.random.Generator, Any] | None] = [None] * task.slots

    def _open_rows(self) -> Rows | SharedMLPRows:
        task, noise = self.task, self.noise
        if isinstance(noise, LowRankNoise) and isinstance(task.network, MLP):
            return SharedMLPRows(task.network, noise, task.slots)
        return task.network.open(task.slots)

    def evaluate(self, job: Job, take: Take, give: Give) -> int:
        """Evaluate items until `take` ends it."""
        with one_blas_thread():
            return self._evaluate(job, take, give)

    def _evaluate(self, job: Job, take: Take, give: Give) -> int:
        self.job = job
        self.addresses = replace(self.task, center_episodes=sys.maxsize) if job.only_center else self.task
        self.population = job.population.bound(self.noise)
        if isinstance(self.rows, SharedMLPRows):
            self.rows.set_center(job.center)
        busy, gaps = 0, list[int]()  # rows from 0 to busy are in use, except for the gaps
        while True:
            items = take(self.task.slots - busy + len(gaps), busy - len(gaps))
            if items is None:
                return sum(self.tick - self.begun[row] for row in range(busy) if row not in gaps)
            for item in items:
                row = gaps[0] if gaps else busy
                failed = self._start(row, item)
                if failed:
                    give([failed])
                elif gaps:
                    gaps.pop(0)
                else:
                    busy += 1
            for row in reversed(gaps):
                busy -= 1
                self._move(busy, row)
            gaps = []
            if busy:
                ended = self._step(busy)
                if ended:
                    give([self._end(*end) for end in ended])
                    gaps = sorted(end.row for end in ended)
            elif not items:
                return 0

    def _step(self, busy: int) -> list[Ended]:
        """One step in each busy row; returns the rows whose episode ended, with the error that ended it if one did."""
        try:
            actions = self._act(busy)
            self.tick += 1
            self.steps += busy
            self.board[0], self.board[1] = self.steps, self.items[0]
            rewards, ended = self.worlds.step(actions, busy, self.observations)
        except (Exception, SystemExit) as error:  # where one call acts for or steps them all, one failure is everyone's
            return [Ended(row, describe_error(error), traceback.format_exc()) for row in range(busy)]
        totals, signed, bonus = self.totals, self.task.sign_fitness, self.task.survival_bonus
        for row, reward in enumerate(rewards):
            try:
                totals[row] += reward
                if signed:
                    self.signs[row] += bool(reward > bonus) - bool(reward < bonus)
            except Exception as error:  # not a number
                others = [end for end in ended if end.row != row]
                ended = [*others, Ended(row, describe_error(error), traceback.format_exc())]
        return ended if self.tick < min(self.until[:busy]) else self._capped(busy, ended)

    def _capped(self, busy: int, ended: list[Ended]) -> list[Ended]:
        """The rows that ended, and those that reached their limit."""
        done = {end.row for end in ended}
        late = (row for row in range(busy) if self.tick >= self.until[row] and row not in done)
        return ended + [Ended(row) for row in late]

    def _rows(self, busy: int) -> tuple[Any, ...]:
        """Of the busy rows the observations, their sums, the sums of their squares, scratch room and inputs, as views."""
        if busy not in self._views:
            arrays = (self.observations, *self.moments, self.scratch, self.inputs)
            self._views[busy] = tuple(array[:busy] for array in arrays)
        return self._views[busy]

    def _act(self, busy: int) -> Any:
        """One batched forward: normalise, run every row's own parameters, choose actions."""
        observations, _, _, scratch, inputs = self._rows(busy)
        self._count(busy)
        if self.job.normalizer is not None:
            self.job.normalizer.into(observations, scratch, inputs)
        else:
            inputs = observations if self.images else observations.astype(np.float32)
        outputs = self.rows.forward(inputs)
        flat = outputs.ravel()
        if not math.isfinite(flat.dot(flat)):  # finite numbers with infinite squares change nothing
            finite = np.isfinite(outputs)
            outputs = np.where(finite, outputs, np.float32(0))
            for row in np.flatnonzero(~finite.all(axis=1)):
                self.totals[row] = math.nan  # the episode's return is refused when it ends
        return self.task.head(outputs, self._noise_of_actions(busy) if self.task.action_noise else None)

    def _count(self, busy: int) -> None:
        """Add the observations to the sums of episodes that count; of all rows at once, unless few of them do."""
        counting = sum(self.counted[:busy])
        if not counting:
            return
        rows = self._rows(busy)
        if 2 * counting > busy:
            _add(*rows[:4])
        else:
            for row in range(busy):
                if self.counted[row]:
                    _add(*(array[row] for array in rows[:4]))

    def _noise_of_actions(self, busy: int) -> Any:
        """Gaussian noise for each row's action, a pure function of its episode's address; none for the centre."""
        head = self.task.head
        assert isinstance(head, BoxHead)
        noise = np.zeros((busy, head.size), dtype=np.float32)
        for row, source in enumerate(self.action_noise[:busy]):
            if source is None:
                continue
            at = (self.tick - self.begun[row]) % NOISE_BLOCK
            if at == 0:
                block = source[0].standard_normal((NOISE_BLOCK, head.size), dtype=np.float32)
                self.action_noise[row] = source = source[0], block * np.float32(self.task.action_noise)
            noise[row] = source[1][at]
        return noise

    def _start(self, row: int, item: int) -> Result | None:
        """Begin an item's episode in a row; a failure to reset is its result."""
        task, generation = self.task, self.job.generation
        member, episode = self.addresses.address(item)
        self.board[1] = item
        try:
            observation = self.worlds.reset(row, self.addresses.reset_seed(generation, item))
            if np.shape(observation) != self.observations.shape[1:]:
                raise ValueError(f"observation has shape {np.shape(observation)}; expected {self.observations.shape[1:]}")
            self.observations[row] = observation
        except (Exception, SystemExit) as error:
            return Result(item, math.nan, math.nan, 0, None, describe_error(error), traceback.format_exc())
        self._load(row, member)
        self.rows.start(row)
        self.moments[:, row] = 0.0
        self.items[row], self.totals[row], self.signs[row], self.begun[row] = item, 0.0, 0, self.tick
        self.counted[row] = self.addresses.counts_observations(generation, item)
        cap = None if member is None else self.job.episode_cap  # the centre shows whole episodes
        self.until[row] = self.tick + min(cap or math.inf, self.worlds.limit or math.inf)
        noisy = task.action_noise and member is not None
        self.action_noise[row] = (
            (generator(task.seed, Purpose.ACTION_NOISE, generation, member, episode), None) if noisy else None  # type: ignore[arg-type]
        )
        return None

    def _load(self, row: int, member: int | None) -> None:
        """Give a row the parameters of a member, or of the centre."""
        if isinstance(self.rows, SharedMLPRows):
            direction, sign = direction_of(member or 0, self.task.antithetic)
            self.rows.load(row, self.job.generation, direction, 0.0 if member is None else sign * self.population.sigma)
        elif member is None:
            self.rows.parameters[row] = self.job.center
        else:
            self.population.write(member, self.rows.parameters[row])

    def _end(self, row: int, error: str | None, trace: str) -> Result:
        """The result of the episode in a row."""
        item, length = self.items[row], self.tick - self.begun[row]
        try:
            total = real(self.totals[row])
        except Exception as wrong:  # a reward was not a number, yet could be added to one
            total, error = math.nan, error or describe_error(wrong)
        statistics = self.moments[:, row].copy() if self.counted[row] else None
        if error is None and not is_fitness(total):
            error = unusable(total)
        if error is None and statistics is not None and not math.isfinite(statistics.sum()):
            error = "an observation, or the square of one, is not finite"
        if error is not None:
            return Result(item, math.nan, math.nan, length, None, error, trace)
        return Result(item, self.task.fitness(total, self.signs[row], length), total, length, statistics)

    def _move(self, last: int, row: int) -> None:
        """Close the gap at `row` with the last busy row; the two environments change places."""
        if row == last:
            return
        self.rows.move(last, row)
        self.observations[row] = self.observations[last]
        self.moments[:, row] = self.moments[:, last]
        episode: tuple[list[Any], ...] = (self.items, self.totals, self.signs, self.begun, self.until)
        for column in (*episode, self.counted, self.action_noise):
            column[row] = column[last]
        self.worlds.swap(row, last)

    def close(self) -> None:
        """Close the environments."""
        self.worlds.close()


def real(total: Any) -> float:
    """A sum of rewards as a float. Complex numbers, and more numbers than one, raise TypeError."""
    if np.iscomplexobj(total) or np.size(total) != 1:
        raise TypeError(f"the rewards add up to {type(total).__name__}; expected one real number each")
    return float(total)


def _add(observations: Any, totals: Any, squares: Any, scratch: Any) -> None:
    np.add(totals, observations, out=totals)
    np.add(squares, np.multiply(observations, observations, out=scratch), out=squares)
