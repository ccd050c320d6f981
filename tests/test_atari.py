"""Atari: what is seen, when episodes begin and end, and that they repeat from their seed."""

import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import esker
from esker.cli import main
from esker.runs import checkpoints
from esker.runs.request import configure
from esker.worlds.atari import Atari
from esker.worlds.environments import Environment, reset_is_exact, resolve

pytest.importorskip("ale_py")

TINY = {"preset": None, "noise": "counter", "workers": 0, "population": 2, "center_episodes": 1, "max_episode_steps": 12}


def pong(**options):
    return Environment("ALE/Pong-v5", atari=Atari(**options)).make()


def play(env, seed, steps=60):
    """Everything seen under fixed actions."""
    seen = [env.reset(seed=seed)[0]]
    for action in np.random.default_rng(0).integers(0, 6, steps):
        seen.append(env.step(int(action))[0])
    return np.array(seen)


def test_episodes_repeat_from_their_seed_on_any_instance_whatever_was_played_before():
    one, other = pong(sticky_actions=0.25), pong(sticky_actions=0.25)
    play(other, 99)
    assert (play(one, 5) == play(other, 5)).all()
    assert reset_is_exact(one)


def test_an_episode_is_that_of_gymnasiums_own_preprocessing():
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    plain = gym.make("ALE/Breakout-v5", frameskip=1, repeat_action_probability=0.0, obs_type="grayscale")
    theirs = FrameStackObservation(AtariPreprocessing(plain, noop_max=0), 4)
    ours = Environment("ALE/Breakout-v5", atari=Atari(noop_max=0)).make()
    assert (ours.reset(seed=3)[0] == theirs.reset(seed=3)[0]).all()
    lives = []
    for action in np.random.default_rng(0).integers(0, 4, 3000):
        seen, *rest = ours.step(int(action))
        wanted, *expected = theirs.step(int(action))
        assert (seen == wanted).all()
        assert rest == expected
        lives.append(rest[-1]["lives"])
        if rest[1]:
            break
    assert (lives[0], lives[-1]) == (5, 0)  # a whole game was compared


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("frame_skip", 2),
        ("frame_stack", 2),
        ("screen_size", 50),
        ("screen_width", 30),
        ("noop_max", 3),
        ("sticky_actions", 0.5),
    ],
)
def test_the_option_changes_what_is_seen(name, value):
    usual, other = play(pong(), 12), play(pong(**{name: value}), 12)
    assert usual.shape != other.shape or (usual != other).any()
    shape = {"frame_stack": (2, 84, 84), "screen_size": (4, 50, 50), "screen_width": (4, 84, 30)}.get(name, (4, 84, 84))
    assert other.shape[1:] == shape


def test_a_cropped_frame_is_that_part_of_the_screen_scaled():
    import cv2

    whole, cropped = pong(), pong(crop=(34, 194), screen_size=16, frame_stack=1)
    whole.reset(seed=5), cropped.reset(seed=5)
    for action in np.random.default_rng(0).integers(0, 6, 50):
        whole.step(int(action))
        seen = cropped.step(int(action))[0]
    buffers = whole.get_wrapper_attr("obs_buffer")  # the last two frames: the first is the larger of both
    assert (seen[0] == cv2.resize(buffers[0][34:194], (16, 16), interpolation=cv2.INTER_AREA)).all()
    assert np.unique(seen).size > 1  # a ball or a paddle is in it


@pytest.mark.parametrize("rows", [(34,), (34, 194, 3), (194, 34), (34, 211)])
def test_rows_that_the_screen_lacks_are_refused(rows):
    with pytest.raises(esker.UsageError, match="expected two rows of 210, as 34,194"):
        pong(crop=rows)


def test_max_frames_ends_an_episode():
    env = pong(max_frames=400, noop_max=0)
    env.reset(seed=0)
    steps, over = 0, False
    while not over:
        *_, terminated, truncated, _ = env.step(0)
        steps, over = steps + 1, terminated or truncated
    assert truncated
    assert steps == 100


def test_max_episode_steps_counts_decisions_not_frames():
    env = Environment("ALE/Pong-v5", atari=Atari(), max_episode_steps=7).make()
    env.reset(seed=0)
    ends = [env.step(0)[3] for _ in range(7)]
    assert ends == [False] * 6 + [True]


def test_old_ids_stand_for_the_newest_game_with_a_notice():
    for old in ("PongDeterministic-v4", "PongNoFrameskip-v3", "Pong-v0"):
        environment, notices = resolve(old)
        assert environment.name == "ALE/Pong-v5"
        assert notices == [f"environment {old} is translated to ALE/Pong-v5, its newest version"]


def test_pong_takes_the_linear_policy_by_itself():
    asked = configure("PongDeterministic-v3", {})
    assert (asked.environment.name, asked.config.network) == ("ALE/Pong-v5", "linear")
    assert any(notice.startswith("preset pong/ars") for notice in asked.notices)


@pytest.mark.parametrize("given", ["RIGHT,LEFT", "RIGHT, LEFT", ["RIGHT", "LEFT"]])
def test_actions_are_stored_as_names_however_they_are_given(given):
    assert configure("ALE/Pong-v5", {"actions": given}).config.actions == ("RIGHT", "LEFT")


def test_flags_undo_the_view_of_a_file(tmp_path):
    view = json.dumps({"actions": ["RIGHT", "LEFT"], "crop": [34, 194], "screen_width": 4})
    flags = ["train", "ALE/Pong-v5", "--config", view, "--actions", "none", "--crop", "none", "--screen-width", "none"]
    short = [
        "--fire",
        "--generations",
        "1",
        "--max-episode-steps",
        "9",
        "--workers",
        "0",
        "--run-dir",
        str(tmp_path / "run"),
    ]
    assert main(flags + short) == 0
    config = esker.Run(tmp_path / "run").config
    assert (config.actions, config.crop, config.screen_width) == ((), (), None)
    assert esker.Run(tmp_path / "run").make_env().action_space.n == 6


def test_another_network_does_not_get_the_view_of_the_preset_nor_envpool_its_actions():
    asked = configure("ALE/Pong-v5", {"network": "nature-cnn"})
    assert asked.environment.make().observation_space.shape == (4, 84, 84)
    view = "screen_size = 21, frame_stack = 2"
    assert f"left out for network nature-cnn: the preset's initializer = zero, {view}" in asked.notices
    other = configure("ALE/Pong-v5", {"vectorizer": "envpool"})
    assert "left out for envpool: the preset's fire = False" in other.notices
    assert other.config.fire


def test_conv_lstm_sees_one_frame_of_42_and_others_four_of_84():
    for network, shape in (("conv-lstm", (1, 42, 42)), ("nature-cnn", (4, 84, 84))):
        environment = configure("ALE/Pong-v5", {"network": network}, preset=None).environment
        assert environment.make().observation_space.shape == shape


def test_a_linear_policy_sees_pixels_as_numbers_that_are_normalised(tmp_path):
    options = TINY | {"network": "linear", "initializer": "zero", "generations": 1, "quiet": True}
    run = esker.train("ALE/Pong-v5", run_dir=str(tmp_path / "run"), **options)
    policy = esker.load(run.path)
    assert policy.observation_space.shape == (2, 42, 42)  # two small frames, as they come from the environment
    assert policy.network.input_shape == (2 * 42 * 42,)
    assert policy.normalizer is not None
    frames = np.random.default_rng(0).integers(0, 256, (3, 2, 42, 42)).astype(np.uint8)
    assert policy.act(frames) == [policy.act(frame) for frame in frames]
    assert esker.evaluate(run.path, episodes=1, workers=0)[0].summary()["length_mean"] == 12
    ended = esker.resume(run.path, generations=2, quiet=True)
    whole = esker.train("ALE/Pong-v5", run_dir=str(tmp_path / "whole"), **options | {"generations": 2})
    assert (esker.load(ended.path).parameters == esker.load(whole.path).parameters).all()


def test_without_the_fire_button_the_other_actions_remain():
    plain, without = pong(noop_max=0), pong(noop_max=0, fire=False)
    assert (plain.action_space.n, without.action_space.n) == (6, 3)  # NOOP, RIGHT, LEFT
    for env in (plain, without):
        env.reset(seed=3)
    for action in [1, 1, 2, 0, 1, 2, 2, 1]:
        assert (without.step(action)[0] == plain.step([0, 2, 3][action])[0]).all()


def test_a_policy_has_the_named_actions_in_their_order_and_no_ops_stay_no_ops():
    plain, chosen = pong(noop_max=30, sticky_actions=0.25), pong(noop_max=30, sticky_actions=0.25, actions=("LEFT", "right"))
    assert chosen.action_space.n == 2
    assert (plain.reset(seed=3)[0] == chosen.reset(seed=3)[0]).all()
    for action in [1, 1, 0, 0, 1, 0, 0, 1]:
        assert (chosen.step(action)[0] == plain.step([3, 2][action])[0]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actions": ("RIGHT", "LEFFT")}, "it has no action 'LEFFT'; did you mean 'LEFT'"),
        ({"actions": ("RIGHT",)}, "a policy needs at least two actions; its actions are NOOP, FIRE, RIGHT, LEFT"),
        ({"actions": ("RIGHT", "LEFTFIRE"), "fire": False}, "LEFTFIRE presses the fire button; leave out --no-fire"),
    ],
)
def test_actions_that_the_game_lacks_and_fewer_than_two_are_refused(options, message):
    with pytest.raises(esker.UsageError, match=message):
        pong(**options)


def test_a_game_that_is_all_fire_keeps_its_button(monkeypatch):
    import ale_py

    monkeypatch.setattr(ale_py.env.AtariEnv, "get_action_meanings", lambda self: ["NOOP", "FIRE"])
    with pytest.raises(esker.UsageError, match="without the fire button it has fewer than two actions; leave out --no-fire"):
        pong(fire=False)


def test_the_reference_batch_is_in_every_checkpoint_and_resumes_exactly(tmp_path):
    options = TINY | {"network": "nature-cnn", "reference_frames": 3, "checkpoint_every": 1, "sigma": 0.1}
    whole = esker.train("ALE/Pong-v5", **options, generations=2, run_dir=str(tmp_path / "whole"))
    part = esker.train("ALE/Pong-v5", **options, generations=1, run_dir=str(tmp_path / "part"))
    resumed = esker.resume(part.path, generations=2)
    snapshots = [checkpoints.read(run.path / "checkpoints" / "000002").arrays for run in (whole, resumed)]
    assert snapshots[0]["reference"].shape == (3, 4, 84, 84)
    assert len(np.unique(snapshots[0]["reference"])) > 2
    assert (snapshots[0]["center"] == snapshots[1]["center"]).all()
    assert (snapshots[0]["reference"] == snapshots[1]["reference"]).all()
    action = esker.load(resumed.path, 2).act(np.zeros((4, 84, 84), np.uint8))
    assert action in range(6)
    summary = esker.evaluate(resumed.path, episodes=2, checkpoint=2, workers=0)[0].summary()
    assert summary["length_mean"] == 12


def test_pixels_train_to_the_same_bits_in_any_number_of_slots(tmp_path):
    """σ is large, so that members act differently and a mix-up of rows would show."""
    options = TINY | {"network": "conv-lstm", "channels": 4, "lstm_size": 8, "population": 6, "sigma": 0.5, "shaping": "raw"}
    options |= {"max_episode_steps": 150, "generations": 1}
    facts = []
    for slots in (1, 4):
        run = esker.train("ALE/Pong-v5", **options, slots=slots, run_dir=str(tmp_path / f"{slots}"))
        facts.append(next(iter(run.folder.facts())))
    assert (facts[0].returns == facts[1].returns).all()
    assert (facts[0].lengths == facts[1].lengths).all()


def test_the_memory_of_a_game_is_a_vector_for_an_mlp(tmp_path):
    run = esker.train("ALE/Pong-v5", **TINY, generations=1, env_kwargs={"obs_type": "ram"}, run_dir=str(tmp_path / "a"))
    assert run.policy().network.inputs == 128


def test_the_old_name_of_a_memory_is_not_taken_for_the_screen():
    with pytest.raises(esker.UsageError, match=r"use ALE/Pong-v5 with --env-kwargs .{.obs_type.: .ram.}."):
        configure("Pong-ram-v4", {})


@pytest.mark.parametrize(
    ("options", "file"),
    [
        ({"env_kwargs": {"obs_type": "ram"}}, None),
        ({"env_kwargs": '{"obs_type" : "ram"}'}, None),
        ({}, {"env_config": {"obs_type": "ram"}}),
    ],
)
def test_the_memory_of_a_game_takes_no_preset_by_itself_and_refuses_a_named_one(options, file):
    request = configure("ALE/Pong-v5", options, config=file)
    assert request.config.screen_size is None
    assert request.config.env_kwargs == {"obs_type": "ram"}
    assert any("its memory is observed: not used" in text for text in request.notices)
    with pytest.raises(esker.UsageError, match="is for the screen of a game, and env_kwargs asks for its memory"):
        configure("ALE/Pong-v5", {"env_kwargs": {"obs_type": "ram"}}, preset="pong/ars")


@pytest.mark.parametrize(
    ("missing", "request_", "message"),
    [
        ("ale_py", "'ALE/Pong-v5'", "environment 'ALE/Pong-v5' needs ale-py; pip install 'esker[atari]'"),
        ("cv2", "'ALE/Pong-v5', network='conv-lstm'", "environment 'ALE/Pong-v5' needs OpenCV; pip install 'esker[atari]'"),
        ("envpool", "'CartPole-v1', vectorizer='envpool'", "needs EnvPool; pip install 'esker[envpool]'"),
    ],
)
def test_a_missing_extra_is_named_with_its_remedy(missing, request_, message):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import esker\n"
        f"try: esker.train({request_}, preset=None, generations=1)\n"
        "except esker.UsageError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1].endswith(message)


@pytest.mark.parametrize("content", [None, b"not a cartridge"])
def test_a_missing_or_damaged_rom_gets_status_2_and_the_remedy(tmp_path, monkeypatch, capsys, content):
    if content is not None:
        (tmp_path / "pong.bin").write_bytes(content)
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    assert main(["train", "ALE/Pong-v5", "--generations", "1", "--run-dir", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err.strip()
    assert len(error.splitlines()) == 1
    assert "pong.bin" in error
    assert "ALE_ROMS_DIR" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ALE/Pong-v5", "--preset", "none"], "network mlp does not fit: observations are images of shape (4, 84, 84)"),
        (
            ["CartPole-v1", "--network", "nature-cnn"],
            "network nature-cnn does not fit: observations are vectors of shape (4,)",
        ),
        (["CartPole-v1", "--frame-skip", "2"], "frame_skip is for Atari environments (ALE/…), and this is CartPole-v1"),
        (["ALE/Pogn-v5"], "unknown environment 'ALE/Pogn-v5'; did you mean 'ALE/Pong-v5'"),
        (["CartPole-v1", "--crop", "34,194"], "crop is for Atari environments (ALE/…), and this is CartPole-v1"),
        (["ALE/Pong-v5", "--actions", "UP,DOWN"], "it has no action 'UP'; its actions are NOOP, FIRE, RIGHT, LEFT"),
        (["CartPole-v1", "--no-fire"], "fire is for Atari environments (ALE/…), and this is CartPole-v1"),
        (["CartPole-v1", "--channels", "8"], "channels is for --network conv-lstm, and this is mlp"),
        (["worlds:Album"], "observations are a Dict with images inside"),
        (["ALE/Pong-v5", "--env-kwargs", json.dumps({"mode": 77})], "environment 'ALE/Pong-v5' cannot be made"),
    ],
)
def test_a_request_that_does_not_fit_the_world_gets_status_2_and_one_line(capsys, arguments, message):
    assert main(["train", *arguments, "--generations", "1"]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said
