"""Rollouts of the hybrids' individuals: the same actor as everywhere, played below Gymnasium's bookkeeping."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hybrid_worlds import Reach

from esker.policies.heads import BoxHead
from esker.policies.mlp import ACTIVATIONS, MLP
from esker.policies.one_mlp import OneMLP
from esker.tasks.requests import Rollout
from esker.tasks.rollouts import Player
from esker.worlds.environments import Environment

NETWORK = MLP((2, 7, 5, 1))
HEAD = BoxHead(np.array([-0.5], dtype=np.float32), np.array([1.5], dtype=np.float32), "tanh")


def stage(**options):
    return Player(Environment("hybrid_worlds:Reach", **options), NETWORK, HEAD, [0])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("count", [1, 4])
def test_one_actor_computes_what_rows_with_its_parameters_do(activation, count):
    network = MLP((3, 40, 30, 2), activation)
    parameters = np.random.default_rng(0).standard_normal(network.dimension).astype(np.float32) / 5
    observations = np.random.default_rng(1).standard_normal((count, 3)).astype(np.float32)
    one, rows = OneMLP(network), network.open(count)
    one.become(parameters)
    rows.parameters[:] = parameters
    with_ones = np.hstack([observations, np.ones((count, 1), dtype=np.float32)])
    expected = rows.forward(observations)
    np.testing.assert_allclose(one.forward(with_ones), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one.forward(with_ones[0]), expected[0], rtol=1e-5, atol=1e-6)


def test_squashed_actions_never_pass_a_bound():
    rng = np.random.default_rng(0)
    low = rng.standard_normal(2000).astype(np.float32)
    high = low + rng.random(2000).astype(np.float32)
    head = BoxHead(low, high, "tanh")
    for size in (-50.0, -1.0, 0.0, 1.0, 50.0):
        actions = head(np.full((1, 2000), size, dtype=np.float32))[0]
        assert (actions >= low).all()
        assert (actions <= high).all()
        expected = low.astype(float) + (np.tanh(size) + 1) * (high.astype(float) - low) / 2
        np.testing.assert_allclose(actions, expected, atol=1e-6)


def test_transitions_are_those_of_the_environment_stepped_by_hand():
    parameters = NETWORK.initial(np.random.default_rng(3)) * 3
    returns, lengths, rows = stage().run(Rollout((11, 12), parameters))
    assert lengths == [10, 10]
    env = Reach()
    for episode, seed in enumerate((11, 12)):
        observation = env.reset(seed=seed)[0]
        for row in rows[10 * episode : 10 * episode + 10]:
            following, reward, terminated, _, _ = env.step(row[2:3])
            expected = np.array([*observation, *row[2:3], reward, *following, not terminated], dtype=np.float32)
            np.testing.assert_array_equal(row, expected)
            observation = following
        assert returns[episode] == pytest.approx(rows[10 * episode : 10 * episode + 10, 3].sum(), rel=1e-6)


def test_a_time_limit_ends_an_episode_without_terminating_it():
    _, lengths, rows = stage(max_episode_steps=4).run(Rollout((1, 2, 3), NETWORK.initial(np.random.default_rng(0))))
    assert lengths == [4, 4, 4]
    assert (rows[:, -1] == 1).all()


def test_episodes_of_unequal_length_leave_one_by_one_and_repeat_exactly():
    # the threshold ends some episodes early, so that fewer and fewer are under way
    options = {"kwargs": {"length": 3000, "far": 1.05}}
    parameters = NETWORK.initial(np.random.default_rng(5))
    asked = Rollout(tuple(range(6)), parameters)
    used = stage(**options)
    first = used.run(asked)
    assert len(set(first[1])) > 1
    assert sum(first[1]) == len(first[2]) == used.board[0]
    used.run(Rollout((9,), parameters))
    for other in (used, stage(**options)):
        again = other.run(asked)
        assert first[:2] == again[:2]
        assert first[2].tobytes() == again[2].tobytes()


def test_an_episode_may_outgrow_its_room():
    asked = Rollout((1,), NETWORK.initial(np.random.default_rng(0)) * 0)
    _, lengths, rows = stage(kwargs={"length": 2500, "far": 1e9}).run(asked)
    assert lengths == [2500]
    np.testing.assert_array_equal(rows[1:, :2], rows[:-1, 4:6])


class Keeps(gym.Env):
    """Takes actions of two dimensions; keeps the last one and changes it later, and one reward that it changes too."""

    observation_space = gym.spaces.Box(-9, 9, (2,))
    action_space = gym.spaces.Box(-1, 1, (2, 2))

    def __init__(self):
        self.reward = np.zeros(())

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.kept = 0, np.zeros((2, 2))
        return self.np_random.normal(size=2), {}

    def step(self, action):
        assert action.shape == (2, 2)
        self.kept += 7.0
        self.kept, self.count = action, self.count + 1
        self.reward[...] = self.count
        return self.np_random.normal(size=2), self.reward, False, self.count == 5, {}


@pytest.mark.parametrize("count", [1, 3])
def test_what_an_environment_keeps_and_changes_later_is_recorded_as_it_was(count):
    ones = np.ones((2, 2), dtype=np.float32)
    own = Player(Environment("test_rollouts:Keeps"), MLP((2, 7, 4)), BoxHead(-ones, ones, "tanh"), [0])
    returns, lengths, rows = own.run(Rollout(tuple(range(count)), MLP((2, 7, 4)).initial(np.random.default_rng(0))))
    assert lengths == [5] * count
    assert returns == [15.0] * count
    assert np.abs(rows[:, 2:6]).max() <= 1
    np.testing.assert_array_equal(rows[:5, 6], [1, 2, 3, 4, 5])


class Counts(list):
    """A board that remembers what was written to it."""

    def __init__(self):
        super().__init__([0])
        self.written = []

    def __setitem__(self, at, value):
        super().__setitem__(at, value)
        self.written.append(value)


def test_every_step_of_every_place_shows_on_the_board():
    own = Player(Environment("hybrid_worlds:Reach"), NETWORK, HEAD, board := Counts())
    own.run(Rollout((1, 2, 3), NETWORK.initial(np.random.default_rng(0))))
    assert board.written == list(range(1, 31))


def test_wrappers_outside_of_the_time_limit_still_step():
    env = Environment("hybrid_worlds:Reach", wrappers=("test_rollouts:doubled",))
    asked = Rollout((4,), NETWORK.initial(np.random.default_rng(0)))
    double = Player(env, NETWORK, HEAD, [0]).run(asked)[0][0]
    assert double == pytest.approx(2 * stage().run(asked)[0][0], rel=1e-6)


def doubled(env):
    return gym.wrappers.TransformReward(env, lambda reward: 2 * reward)
