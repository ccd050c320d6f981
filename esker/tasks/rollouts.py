"""Rollouts of explicit parameters, with every transition recorded: what the hybrids' individuals are evaluated on."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from esker.errors import named_line
from esker.learners.rows import Rows, TransitionLayout
from esker.noise.directions import Vector
from esker.policies.heads import BoxHead
from esker.policies.mlp import MLP
from esker.policies.network import Batch
from esker.policies.one_mlp import OneMLP
from esker.system.blas import one_blas_thread
from esker.tasks.requests import Rollout
from esker.worlds.environments import Env, Environment, bare_step, close_quietly, silence

Act = Callable[[np.ndarray], np.ndarray]  # the action for what one place sees now, or the actions for several
FIRST_STEPS = 1024  # that a place has room for; the room doubles
Board = Any  # a list or a memoryview whose first entry counts what this process has done


class EpisodeBuffer:
    """One environment, and what is seen and done in the episode that is played in it.

    A step writes as little as it can, because the simulator wants the cache: transitions are put together afterwards.
    Every observation has a one behind it, which is how `OneMLP` takes it.
    """

    def __init__(self, environment: Environment, layout: TransitionLayout, fresh: bool) -> None:
        self.environment = environment
        self.layout = layout
        self.fresh = fresh
        self.length = 0
        self.terminated = False
        self._env: Env | None = None
        self._actions: list[np.ndarray] = []
        self._rewards: list[float] = []
        self._hold(np.ones((FIRST_STEPS, layout.observation + 1), dtype=np.float32))

    def _hold(self, seen: Batch) -> None:
        self._seen, self._observations, self._room = seen, seen[:, :-1], len(seen)

    @property
    def now(self) -> Batch:
        """What is seen now, and a one."""
        return self._seen[self.length]

    def rows(self, begin: int = 0) -> Rows:
        """The episode's transitions so far, from one of them on."""
        end, size, reward_at = self.length, self.layout.observation, self.layout.reward
        rows: Rows = np.ones((end - begin, self.layout.width), dtype=np.float32)
        rows[:, :size] = self._observations[begin:end]
        rows[:, size:reward_at] = np.reshape(self._actions[begin:end], (end - begin, -1))
        rows[:, reward_at] = np.reshape(self._rewards[begin:end], end - begin)
        rows[:, reward_at + 1 : -1] = self._observations[begin + 1 : end + 1]
        if self.terminated:  # a time limit is not a termination
            rows[-1, -1] = 0.0
        return rows

    def begin(self, seed: int, first: EpisodeBuffer) -> None:
        """Start an episode next to the first place's."""
        if self._env is None or self.fresh:
            self.close()
            with silence():
                self._env = self.environment.make_beside(first._env)
            self._step, self._limit = bare_step(self._env)
        self.length, self.terminated, self._actions, self._rewards = 0, False, [], []
        self._observations[0] = self._env.reset(seed=seed)[0]

    def step(self, action: np.ndarray) -> bool:
        """Take one step. Returns whether the episode is over."""
        following, reward, terminated, truncated, _ = self._step(action)
        self._actions.append(action.copy())  # environments may keep theirs and change it later
        self._rewards.append(float(reward))
        self.length = at = self.length + 1
        if at == self._room:
            self._hold(np.concatenate([self._seen, np.ones_like(self._seen)]))
        self._observations[at] = following
        self.terminated = terminated
        return terminated or truncated or at == self._limit

    def close(self) -> None:
        """Close the environment."""
        if self._env is not None:
            close_quietly(self._env)
            self._env = None


class Player:
    """Places where one actor is played, made when first needed: the episodes of a request are played side by side.

    What an action is depends, in its last bits, on how many episodes are under way; and that only on the request.
    """

    def __init__(self, environment: Environment, network: MLP, head: BoxHead, board: Board, fresh: bool = False) -> None:
        self.environment = environment
        self.head = head
        self.layout = TransitionLayout(network.inputs, head.size)
        self.board = board
        self.fresh = fresh
        self._actor = OneMLP(network)
        self._tanh_only = head.mode == "tanh" and head.squash is None and head.low.ndim == 1  # the head has nothing to add
        self._places: list[EpisodeBuffer] = []

    def become(self, parameters: Vector) -> None:
        """Take an actor's parameters on."""
        self._actor.become(parameters)

    def act(self, seen: np.ndarray) -> np.ndarray:
        """The actor's action for what one place sees, or its actions for several."""
        outputs = self._actor.forward(seen)
        if self._tanh_only:
            return np.tanh(outputs, outputs)
        return self.head(outputs) if outputs.ndim == 2 else self.head(outputs[None])[0]

    def play(self, seeds: Sequence[int], act: Act) -> Iterator[list[EpisodeBuffer]]:
        """Play one episode for each seed, side by side; after every step, the places that took it."""
        while len(self._places) < len(seeds):
            self._places.append(EpisodeBuffer(self.environment, self.layout, self.fresh))
        places, board = self._places[: len(seeds)], self.board
        for place, seed in zip(places, seeds, strict=True):
            place.begin(seed, places[0])
        while len(places) > 1:
            actions = act(np.stack([place.now for place in places]))
            over = []
            for place, action in zip(places, actions, strict=True):
                if place.step(action):
                    over.append(place)
                board[0] += 1
            yield places
            places = [place for place in places if place not in over] if over else places
        for place in places:
            ended = False
            while not ended:
                ended = place.step(act(place.now))
                board[0] += 1
                yield places

    def run(self, episodes: Rollout) -> tuple[list[float], list[int], Rows | None]:
        """Returns and lengths of some episodes, and their transitions where they are to be recorded."""
        with one_blas_thread():
            if episodes.parameters is None:
                played = [self._play_out([seed], self.random(seed))[0] for seed in episodes.seeds]
            else:
                self.become(episodes.parameters)
                played = self._play_out(episodes.seeds, self.act)
        returns = [float(rows[:, self.layout.reward].sum(dtype=np.float64)) for rows in played]
        recorded = np.concatenate(played) if episodes.record and played else None
        return returns, [len(rows) for rows in played], recorded

    def _play_out(self, seeds: Sequence[int], act: Act) -> list[Rows]:
        """The transitions of whole episodes."""
        for _ in self.play(seeds, act):
            pass
        return [finite(place.rows()) for place in self._places[: len(seeds)]]

    def random(self, seed: int) -> Act:
        """Uniform actions, decided by the episode's seed."""
        rng = np.random.Generator(np.random.Philox(key=seed))
        low, high, shape = self.head.low, self.head.high, self.head.low.shape
        return lambda seen: (low + (high - low) * rng.random(shape, dtype=np.float32)).astype(np.float32)

    def close(self) -> None:
        """Close the environments."""
        for place in self._places:
            place.close()


def finite(rows: Rows) -> Rows:
    """An episode's rows. Numbers that are not finite raise FloatingPointError."""
    if not np.isfinite(rows).all():
        raise FloatingPointError("an observation, an action or a reward is not finite")
    return rows


def what_failed(error: BaseException) -> tuple[str, str]:
    """An error in one line, and where it came from."""
    return named_line(error), _trace()


def _trace() -> str:
    try:
        return traceback.format_exc()
    except Exception:  # an error whose text raises another
        return ""
