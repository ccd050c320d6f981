"""MuJoCo Warp's worlds compared with Gymnasium's environments, on Warp's CPU backend: slow to compile, so only on request.

`ESKER_TEST_WARP=1 pytest tests/test_warp.py`
"""

from __future__ import annotations

import os
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch

import esker
from esker.errors import UsageError
from esker.worlds.device import open_world
from esker.worlds.environments import resolve

pytest.importorskip("mujoco_warp")
pytestmark = pytest.mark.skipif(not os.environ.get("ESKER_TEST_WARP"), reason="compiles for minutes: ESKER_TEST_WARP=1")
CPU = torch.device("cpu")
STEPS = 12


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Humanoid-v5"])
def test_a_dozen_steps_agree_with_gymnasium_to_four_digits(name):
    environment, _ = resolve(name)
    worlds, rows, seeds = open_world("warp", environment, 3, CPU), [0, 2], np.array([4, 5])
    worlds.reset(torch.arange(3), np.array([1, 2, 3]))
    worlds.step(torch.zeros(3, *gym.make(name).action_space.shape))
    first = worlds.reset(torch.tensor(rows), seeds)  # two rows begin anew, beside one under way
    envs = [gym.make(name) for _ in rows]
    for row, (env, seed) in enumerate(zip(envs, seeds, strict=True)):
        assert np.allclose(first[row].numpy(), env.reset(seed=int(seed))[0], rtol=1e-4, atol=1e-4)
    envs[0].action_space.seed(0)
    for _ in range(STEPS):
        actions = np.stack([envs[0].action_space.sample() for _ in range(3)]) * 0.5
        observations, rewards, terminated = worlds.step(torch.from_numpy(actions))
        for row, env in zip(rows, envs, strict=True):
            expected, reward, over, _, _ = env.step(actions[row])
            scale = np.maximum(np.abs(expected), 1.0)
            assert np.max(np.abs(observations[row].numpy() - expected) / scale) < 2e-3
            assert float(rewards[row]) == pytest.approx(reward, rel=1e-3, abs=1e-3)
            assert over == (terminated is not None and bool(terminated[row]))


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Humanoid-v5"])
def test_constraints_in_order_change_no_more_than_rounding(name):
    environment, _ = resolve(name)
    plain, ordered, again = (open_world("warp", environment, 2, CPU, ordered) for ordered in (False, True, True))
    env = gym.make(name)
    env.action_space.seed(0)
    for worlds in (plain, ordered, again):
        worlds.reset(torch.arange(2), np.array([1, 2]))
    for _ in range(STEPS):
        actions = torch.from_numpy(np.stack([env.action_space.sample() for _ in range(2)]) * 0.5)
        first, second, third = (worlds.step(actions).observations.clone() for worlds in (plain, ordered, again))
        assert torch.equal(second, third)
        assert torch.allclose(first, second, rtol=1e-4, atol=2e-3)


def test_order_is_refused_for_a_model_that_it_was_not_written_for(tmp_path):
    file = tmp_path / "ant.xml"
    original = Path(gym.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    file.write_text(original.read_text().replace("<option ", '<option jacobian="sparse" '))
    environment, _ = resolve("Ant-v5", kwargs={"xml_file": str(file)})
    with pytest.raises(UsageError, match="--deterministic is for Gymnasium's own models"):
        open_world("warp", environment, 2, CPU, True)


def test_a_run_in_warps_worlds_is_judged_in_gymnasium(tmp_path):
    options = {"preset": None, "population": 4, "table_size": 50_000, "hidden": (4,), "quiet": True, "max_episode_steps": 6}
    run = esker.train("HalfCheetah-v5", world="warp", device="cpu", generations=2, run_dir=str(tmp_path / "run"), **options)
    assert [row["episode_length_mean"] for row in run.history] == [6, 6]
    judged = run.evaluate(episodes=4).mean
    assert judged == pytest.approx(run.history[-1]["center_return"], abs=2.0)  # six steps: both are near the start's
