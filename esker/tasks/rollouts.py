"""Rollouts of explicit parameters, with every transition recorded: what the hybrids' individuals are evaluated on."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from esker.blas import one_thread
from esker.learners.rows import Layout, Rows
from esker.noise import Row
from esker.policies.heads import BoxHead
from esker.policies.mlp import MLP
from esker.policies.one_mlp import OneMLP
from esker.tasks.environments import Env, Environment, bare_step, silence
from esker.tasks.requests import Episodes

Act = Callable[[np.ndarray], np.ndarray]  # actions for observations, one in each row
FIRST_STEPS = 1024  # that a place has room for; the room doubles
Board = Any  # a list or a memoryview whose first entry counts what this process has done


class Place:
    """One environment, and the transitions of the episode that is played in it."""

    def __init__(self, environment: Environment, layout: Layout, fresh: bool) -> None:
        self.environment = environment
        self.layout = layout
        self.fresh = fresh
        self.length = 0
        self._env: Env | None = None
        self._hold(np.empty((FIRST_STEPS, layout.width), dtype=np.float32))

    def _hold(self, rows: Rows) -> None:
        size, reward_at = self.layout.observation, self.layout.reward
        self._rows = rows
        self._before, self._actions = rows[:, :size], rows[:, size:reward_at]
        self._rewards, self._after, self._goes_on = rows[:, reward_at], rows[:, reward_at + 1 : -1], rows[:, -1]

    @property
    def rows(self) -> Rows:
        """The transitions so far; the next episode is written over them."""
        return self._rows[: self.length]

    def begin(self, seed: int, first: Place) -> np.ndarray:
        """Begin an episode beside the first place's; answers its first observation."""
        if self._env is None or self.fresh:
            self.close()
            with silence():
                self._env = self.environment.make_beside(first._env)
            self._step, self._limit = bare_step(self._env)
        self.length = 0
        return np.asarray(self._env.reset(seed=seed)[0], dtype=np.float32)

    def step(self, observation: np.ndarray, action: np.ndarray) -> bool:
        """Take one step; `observation` becomes what is seen after it. Answers whether the episode is over."""
        at = self.length
        if at == len(self._rows):
            self._hold(np.concatenate([self._rows, np.empty_like(self._rows)]))
        following, reward, terminated, truncated, _ = self._step(action)
        self._before[at] = observation
        self._actions[at] = action if action.ndim == 1 else action.reshape(-1)
        self._rewards[at] = reward
        self._after[at] = following
        self._goes_on[at] = 0.0 if terminated else 1.0  # a time limit is not a termination
        observation[:] = following
        self.length = at + 1
        return bool(terminated or truncated or self.length == self._limit)

    def close(self) -> None:
        """Close the environment."""
        if self._env is not None:
            self._env.close()
            self._env = None


class Stage:
    """Places where one actor is played, made when first needed: the episodes of a request are played side by side.

    What an action is depends, in its last bits, on how many episodes are under way; and that only on the request.
    """

    def __init__(self, environment: Environment, network: MLP, head: BoxHead, board: Board, fresh: bool = False) -> None:
        self.environment = environment
        self.head = head
        self.layout = Layout(network.inputs, head.size)
        self.board = board
        self.fresh = fresh
        self._actor = OneMLP(network)
        self._places: list[Place] = []

    def become(self, parameters: Row) -> None:
        """Take an actor's parameters on."""
        self._actor.become(parameters)

    def act(self, observations: np.ndarray) -> np.ndarray:
        """The actor's actions."""
        return self.head(self._actor.forward(observations))

    def play(self, seeds: Sequence[int], act: Act) -> Iterator[list[Place]]:
        """Play one episode for each seed, side by side; after every step, the places that took it."""
        while len(self._places) < len(seeds):
            self._places.append(Place(self.environment, self.layout, self.fresh))
        places, board = self._places[: len(seeds)], self.board
        observations = np.empty((len(seeds), self.layout.observation), dtype=np.float32)
        for row, (place, seed) in enumerate(zip(places, seeds, strict=True)):
            observations[row] = place.begin(seed, places[0])
        views = list(observations)
        while places:
            ended = []
            for row, action in enumerate(act(observations)):
                if places[row].step(views[row], action):
                    ended.append(row)
                board[0] += 1
            yield places
            if ended:
                places = [place for row, place in enumerate(places) if row not in ended]
                observations = np.delete(observations, ended, axis=0)
                views = list(observations)

    def run(self, episodes: Episodes) -> tuple[list[float], list[int], Rows | None]:
        """Returns and lengths of some episodes, and their transitions where they are to be recorded."""
        with one_thread():
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
        return [finite(place.rows).copy() for place in self._places[: len(seeds)]]

    def random(self, seed: int) -> Act:
        """Uniform actions, decided by the episode's seed."""
        rng = np.random.Generator(np.random.Philox(key=seed))
        low, high, shape = self.head.low, self.head.high, self.head.low.shape
        return lambda observations: (low + (high - low) * rng.random((1, *shape), dtype=np.float32)).astype(np.float32)

    def close(self) -> None:
        """Close the environments."""
        for place in self._places:
            place.close()


def finite(rows: Rows) -> Rows:
    """An episode's rows. Numbers that are not finite raise FloatingPointError."""
    if not np.isfinite(rows).all():
        raise FloatingPointError("an observation, an action or a reward is not finite")
    return rows


def what_failed(error: Exception) -> tuple[str, str]:
    """An error in one line, and where it came from."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__, traceback.format_exc()
