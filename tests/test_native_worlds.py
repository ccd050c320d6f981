"""Native worlds step side by side with Gymnasium's own classes: every bit is equal."""

import gymnasium as gym
import mujoco
import numpy as np
import pytest

from esker.worlds.classic import CLASSIC
from esker.worlds.environments import Environment, silence
from esker.worlds.mujoco_v5 import DEFINITIONS, Scene
from esker.worlds.native import open_native, refusal
from esker.worlds.native.simulation import NativeWorlds

ROWS = 5

VARIANTS = [
    *((name, {}) for name in DEFINITIONS),
    (
        "Ant-v5",
        {
            "frame_skip": 3,
            "forward_reward_weight": 2,
            "ctrl_cost_weight": 0.3,
            "contact_cost_weight": 1e-3,
            "healthy_reward": 0.7,
            "main_body": "torso",
            "healthy_z_range": [0.25, 0.9],
            "contact_force_range": [-0.5, 0.25],
            "reset_noise_scale": 0.2,
            "exclude_current_positions_from_observation": False,
        },
    ),
    ("Ant-v5", {"include_cfrc_ext_in_observation": False, "terminate_when_unhealthy": False, "main_body": 4}),
    (
        "HalfCheetah-v5",
        {
            "frame_skip": 2,
            "forward_reward_weight": 0.1,
            "ctrl_cost_weight": 1,
            "reset_noise_scale": 0.3,
            "exclude_current_positions_from_observation": False,
        },
    ),
    (
        "Hopper-v5",
        {
            "forward_reward_weight": 1.7,
            "ctrl_cost_weight": 0.01,
            "healthy_reward": 2,
            "healthy_state_range": [-4, 4.5],
            "healthy_z_range": [0.5, 1.6],
            "healthy_angle_range": [-0.4, 0.3],
            "reset_noise_scale": 0.02,
            "exclude_current_positions_from_observation": False,
        },
    ),
    ("Hopper-v5", {"terminate_when_unhealthy": False}),
    (
        "Humanoid-v5",
        {
            "forward_reward_weight": 0.9,
            "ctrl_cost_weight": 0.2,
            "contact_cost_weight": 1e-4,
            "contact_cost_range": [0.01, 0.5],
            "healthy_reward": 3,
            "healthy_z_range": [1.1, 1.8],
            "reset_noise_scale": 0.05,
            "exclude_current_positions_from_observation": False,
            "include_cvel_in_observation": False,
            "include_cfrc_ext_in_observation": False,
        },
    ),
    (
        "Humanoid-v5",
        {
            "terminate_when_unhealthy": False,
            "include_cinert_in_observation": False,
            "include_cvel_in_observation": False,
            "include_qfrc_actuator_in_observation": False,
            "include_cfrc_ext_in_observation": False,
        },
    ),
    (
        "HumanoidStandup-v5",
        {
            "uph_cost_weight": 2,
            "ctrl_cost_weight": 0.3,
            "impact_cost_weight": 1e-4,
            "impact_cost_range": [0.02, 0.1],
            "reset_noise_scale": 0.1,
            "include_cinert_in_observation": False,
            "include_qfrc_actuator_in_observation": False,
        },
    ),
    ("InvertedDoublePendulum-v5", {"healthy_reward": 3, "reset_noise_scale": 0.3, "frame_skip": 2}),
    ("InvertedPendulum-v5", {"reset_noise_scale": 0.1, "frame_skip": 1}),
    ("Pusher-v5", {"reward_near_weight": 0.3, "reward_dist_weight": 1.5, "reward_control_weight": 0.7}),
    ("Reacher-v5", {"reward_dist_weight": 0.3, "reward_control_weight": 2.5, "frame_skip": 3}),
    (
        "Swimmer-v5",
        {"forward_reward_weight": 3, "ctrl_cost_weight": 0.1, "exclude_current_positions_from_observation": False},
    ),
    (
        "Walker2d-v5",
        {
            "healthy_reward": 0.3,
            "healthy_z_range": [0.5, 1.4],
            "healthy_angle_range": [-0.5, 0.6],
            "exclude_current_positions_from_observation": False,
        },
    ),
    ("Walker2d-v5", {"terminate_when_unhealthy": False, "xml_file": "walker2d.xml"}),
]


def same(ours, theirs):
    """Whether two numbers or arrays have the same bits."""
    return np.asarray(ours, dtype=np.float64).tobytes() == np.asarray(theirs, dtype=np.float64).tobytes()


class Pair:
    """As many native worlds and Gymnasium environments, in the same states."""

    def __init__(self, name, options, rows=ROWS):
        with silence():
            self.envs = [gym.make(name, disable_env_checker=True, **options) for _ in range(rows)]
        self.native = open_native(Environment(name, kwargs=options), rows)
        self.observations = np.zeros((rows, *self.envs[0].observation_space.shape))
        self.ages = [0] * rows
        self.seed = 0
        self.ended = 0
        for row in range(rows):
            self.reset(row)

    def reset(self, row):
        self.seed, self.ages[row] = self.seed + 1, 0
        self.observations[row] = self.native.reset(row, self.seed)
        assert same(self.observations[row], self.envs[row].reset(seed=self.seed)[0])

    def step(self, actions):
        rewards, ended = self.native.step(actions, len(actions), self.observations)
        terminated = {end.row for end in ended}
        for row, action in enumerate(actions):
            self.ages[row] += 1
            observation, reward, done, truncated, _ = self.envs[row].step(action)
            assert same(self.observations[row], observation)
            assert same(rewards[row], reward)
            assert done == (row in terminated)
            assert truncated == (self.ages[row] >= self.native.limit)
            if done or truncated:
                self.ended += 1
                self.reset(row)
        return rewards

    def swap(self, row, other):
        self.native.swap(row, other)
        for column in (self.envs, self.ages):
            column[row], column[other] = column[other], column[row]
        self.observations[[row, other]] = self.observations[[other, row]]


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=lambda value: value if isinstance(value, str) else len(value))
def test_native_worlds_return_the_bits_of_gymnasium(name, options):
    pair = Pair(name, options)
    space = pair.envs[0].action_space
    random = np.random.default_rng(1)
    wild = random.uniform(0, 1.5, size=(ROWS, 1))  # calm rows live longer; the wild ones leave the bounds
    for _ in range(200 if options else 1010 if name == "HalfCheetah-v5" else 500):
        pair.step((wild * random.uniform(space.low, space.high, size=(ROWS, *space.shape))).astype(np.float32))
    if name.split("-")[0] in {"Pusher", "Reacher", "InvertedPendulum"} or (name == "HalfCheetah-v5" and not options):
        assert pair.ended  # time limits and terminations were among what was compared


@pytest.mark.parametrize("rows", [3, 40])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in CLASSIC),
        ("CartPole-v1", {"sutton_barto_reward": True}),
        ("MountainCar-v0", {"goal_velocity": 0.02}),
        ("Pendulum-v1", {"g": 9.81}),
    ],
)
def test_classic_control_returns_the_bits_of_gymnasium(name, options, rows):
    pair = Pair(name, options, rows)
    space, random = pair.envs[0].action_space, np.random.default_rng(3)
    for _ in range(510 if rows < 10 else 100):
        if isinstance(space, gym.spaces.Box):
            pair.step(random.uniform(1.2 * space.low, 1.2 * space.high, size=(rows, *space.shape)).astype(np.float32))
        else:
            pair.step(random.integers(space.n, size=rows).tolist())
    assert pair.ended or rows > 10


def test_a_car_that_reaches_the_goal_and_its_wall_has_the_bits_of_gymnasium():
    pair = Pair("MountainCar-v0", {})
    for _ in range(400):  # always push the way it moves
        pair.step([2 if velocity >= 0 else 0 for velocity in pair.observations[:, 1]])
    assert pair.ended > 2 * ROWS  # a time limit alone would end two each


def test_fewer_rows_and_rows_that_change_places_keep_their_worlds():
    pair = Pair("Hopper-v5", {})
    random = np.random.default_rng(2)
    for turn in range(60):
        row, other = sorted(random.choice(ROWS, size=2, replace=False).tolist())
        pair.swap(row, other)
        pair.step(random.uniform(-1, 1, size=(1 + turn % ROWS, 3)).astype(np.float32))
    assert pair.ended


def test_an_unstable_simulation_gives_the_same_bits():
    """MuJoCo resets a world whose state is not finite; controls of its last step are then lost."""
    pair = Pair("Humanoid-v5", {"terminate_when_unhealthy": False})
    for data in (*(world.data for world in pair.native.worlds[:2]), *(env.unwrapped.data for env in pair.envs[:2])):
        data.qvel[:] = 1e12
    for _ in range(3):
        pair.step(np.full((ROWS, 17), 0.3, dtype=np.float32))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_definitions_over_torch_tensors_agree_with_numpy(name):
    import torch

    from esker.worlds.torch_arrays import TorchArrays

    with silence():
        native = NativeWorlds(name, {}, 4, None)
    observations = np.array([native.reset(row, row) for row in range(4)])
    actions = np.random.default_rng(0).uniform(-0.4, 0.4, size=(4, native.model.nu))
    before = native.before.copy()
    rewards, _ = native.step(actions, 4, observations)
    scene = Scene.of(native.model, native.frame_skip, TorchArrays(dtype=torch.float64))
    definition = DEFINITIONS[name](scene)
    state = type("State", (), {field: torch.tensor(array) for field, array in native.arrays.items()})
    out = torch.zeros(observations.shape, dtype=torch.float64)
    definition.observe(state, out)
    theirs, _ = definition.outcome(state, torch.tensor(actions), torch.tensor(before), definition.position(state))
    np.testing.assert_allclose(out.numpy(), observations, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(theirs.numpy(), rewards, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CLASSIC)
def test_classic_control_over_torch_tensors_agrees_with_numpy(name):
    import torch

    from esker.worlds.torch_arrays import TorchArrays

    native = open_native(Environment(name), 4)
    for row in range(4):
        native.reset(row, row)
    actions = np.array([[0.5], [1.0], [-2.0], [0.0]], dtype=np.float64) if name == "Pendulum-v1" else np.array([0, 1, 1, 0])
    state = [torch.tensor(column) for column in native.state]
    following, rewards, _ = CLASSIC[name](TorchArrays(dtype=torch.float64)).step(state, torch.tensor(actions))
    ours, _ = native.step(actions, 4, np.zeros((4, native.definition.observation_size)))
    np.testing.assert_allclose(torch.stack(list(following)).numpy(), native.state, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.broadcast_to(np.asarray(rewards), 4), ours, rtol=1e-6)


def test_mujoco_is_not_profiled_while_native_worlds_step():
    worlds = open_native(Environment("HalfCheetah-v5"), 1)
    worlds.reset(0, 0)
    data, timed = worlds.worlds[0].data, mujoco.mjtTimer.mjTIMER_STEP
    worlds.step(np.zeros((1, 6), dtype=np.float32), 1, np.zeros((1, 17)))
    assert data.timer[timed].duration == 0
    mujoco.mj_step(worlds.model, data)
    assert data.timer[timed].duration > 0


@pytest.mark.parametrize("options", [{}, {"gravity": -7.5}])
def test_a_lander_that_lands_or_crashes_has_the_bits_of_gymnasium(options):
    from gymnasium.envs.box2d.lunar_lander import heuristic

    pair, random, rewards = Pair("LunarLander-v3", options, 8), np.random.default_rng(5), set()
    for turn in range(500):
        wise = [heuristic(env.unwrapped, observation) for env, observation in zip(pair.envs, pair.observations, strict=True)]
        actions = [*wise[:5], *random.integers(4, size=3).tolist()]
        rewards |= {reward for reward in pair.step(np.array(actions)) if abs(reward) == 100}
        if turn % 50 == 0:
            pair.swap(turn // 50 % 8, 3)
    assert rewards == {-100, 100}


@pytest.mark.parametrize("options", [{"continuous": True}, {"enable_wind": True}])
def test_a_lander_with_other_arguments_is_left_to_gymnasium(options):
    assert f"does not take {next(iter(options))} True" in refusal(Environment("LunarLander-v3", kwargs=options))


@pytest.mark.skipif(not hasattr(mujoco.mjtDisableBit, "mjDSBL_ISLAND"), reason="this MuJoCo knows no islands")
@pytest.mark.parametrize(("name", "sought"), [("Humanoid-v5", False), ("Pusher-v5", True)])
def test_islands_are_not_sought_where_one_tree_makes_one_island(name, sought):
    flags = open_native(Environment(name), 1).model.opt.disableflags
    assert sought == (not flags & mujoco.mjtDisableBit.mjDSBL_ISLAND)
