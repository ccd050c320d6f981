"""Runs by native stepping: the journal and the parameters of a run by Gymnasium, refusals, fallbacks, old run folders."""

import tomllib

import numpy as np
import pytest
from support import center

import esker
from esker.cli import main
from esker.worlds import native, vectorizers
from esker.worlds.environments import Environment, silence

OPTIONS = {
    "preset": None,
    "population": 8,
    "generations": 2,
    "center_episodes": 1,
    "max_episode_steps": 60,
    "table_size": 200_000,
    "hidden": (8,),
    "workers": 0,
    "quiet": True,
    "seed": 5,
}


def train(path, env="Hopper-v5", **changes):
    return esker.train(env, run_dir=str(path), **(OPTIONS | changes))


def journal(run):
    return [
        {name: value for name, value in row.items() if "time" not in name and "second" not in name} for row in run.history
    ]


@pytest.mark.parametrize(
    ("env", "changes"),
    [
        ("HalfCheetah-v5", {"slots": 3}),
        ("Hopper-v5", {"workers": 2, "slots": 2, "max_episode_steps": None}),
        ("Walker2d-v5", {"action_noise": 0.1, "shaping": "centered_rank", "survival_bonus": 1.0}),
        ("Humanoid-v5", {"env_kwargs": {"healthy_z_range": [1.1, 1.9]}, "noise": "low-rank", "slots": 64}),
        ("CartPole-v1", {"population": 30, "generations": 4, "slots": 7, "max_episode_steps": None}),
        ("Acrobot-v1", {"workers": 1}),
        ("Pendulum-v1", {"action_noise": 0.2}),
        ("InvertedPendulum-v5", {"min_steps": 200, "max_episode_steps": None}),
    ],
)
def test_a_native_run_has_the_journal_and_the_bits_of_a_run_by_gymnasium(tmp_path, env, changes):
    ours, theirs = (train(tmp_path / name, env, vectorizer=name, **changes) for name in ("native", "gymnasium"))
    assert journal(ours) == journal(theirs)
    assert center(ours).tobytes() == center(theirs).tobytes()


def test_native_is_the_default_where_it_covers_the_environment_and_is_stored(tmp_path):
    assert train(tmp_path / "a").config.vectorizer == "native"
    assert train(tmp_path / "b", vectorizer="auto").config.vectorizer == "native"
    assert train(tmp_path / "c", "MountainCarContinuous-v0").config.vectorizer == "gymnasium"
    assert train(tmp_path / "d", wrapper=("gymnasium.wrappers:ClipAction",)).config.vectorizer == "gymnasium"
    assert train(tmp_path / "e", "Hopper-v4").config.vectorizer == "gymnasium"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MountainCarContinuous-v0"], "vectorizer native does not cover MountainCarContinuous-v0"),
        (["Hopper-v4"], "vectorizer native does not cover Hopper-v4"),
        (["Hopper-v5", "--wrapper", "gymnasium.wrappers:ClipAction"], "vectorizer native does not support wrapper"),
        (["Hopper-v5", "--time-aware"], "vectorizer native does not support time_aware"),
        (["worlds:Corridor"], "vectorizer native does not run your own environments (worlds:Corridor)"),
        (  # without a display, making this one ends the process
            ["Hopper-v5", "--env-kwargs", '{"render_mode": "human"}'],
            "does not take render_mode 'human' for Hopper-v5",
        ),
        (["Hopper-v5", "--env-kwargs", '{"gravity": 3}'], "does not take gravity 3 for Hopper-v5"),
        (
            ["Ant-v5", "--env-kwargs", '{"terminate_when_unhealthy": 1}'],
            "does not take terminate_when_unhealthy 1 for Ant-v5",
        ),
    ],
)
def test_what_native_does_not_cover_is_refused_in_one_line(capsys, arguments, message):
    assert main(["train", *arguments, "--vectorizer", "native", "--generations", "1"]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "covers Gymnasium's Ant-v5, HalfCheetah-v5" in said
    assert "\n" not in said


def test_fresh_environments_and_native_exclude_each_other(capsys):
    assert main(["train", "Hopper-v5", "--vectorizer", "native", "--fresh-environments", "--generations", "1"]) == 2
    assert "fresh_environments is for Gymnasium's" in capsys.readouterr().err


def test_the_self_test_finds_a_bit_that_differs(monkeypatch):
    environment = Environment("Hopper-v5")
    with silence():
        probe = environment.make()
    assert native.gives_the_bits_of(environment, probe)
    probe.unwrapped._ctrl_cost_weight = np.nextafter(1e-3, 1)
    probe.unwrapped._healthy_reward = np.nextafter(1.0, 2)
    assert not native.gives_the_bits_of(environment, probe)


@pytest.mark.parametrize("asked", [None, "native"])
def test_other_bits_fall_back_to_gymnasium_with_a_note(tmp_path, capsys, monkeypatch, asked):
    monkeypatch.setattr(vectorizers, "gives_the_bits_of", lambda environment, probe: False)
    run = train(tmp_path / "run", vectorizer=asked, quiet=False)
    assert run.config.vectorizer == "gymnasium"
    assert "native stepping of Hopper-v5 computes other bits" in " ".join(capsys.readouterr().out.split())


def test_versions_that_were_not_checked_take_the_general_path(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(native.coverage, "CHECKED", ({"gymnasium": "0.1", "mujoco": "0.1"},))
    assert train(tmp_path / "default").config.vectorizer == "gymnasium"
    assert train(tmp_path / "asked", vectorizer="native", quiet=False).config.vectorizer == "gymnasium"
    assert "native stepping was not checked with gymnasium" in " ".join(capsys.readouterr().out.split())


def test_a_native_run_resumes_by_gymnasium_where_native_cannot_be_had(tmp_path, monkeypatch):
    whole = train(tmp_path / "whole", generations=3)
    train(tmp_path / "parts", generations=1)
    monkeypatch.setattr(native.coverage, "CHECKED", ())
    parts = esker.resume(tmp_path / "parts", generations=3)
    assert journal(parts) == journal(whole)
    assert center(parts).tobytes() == center(whole).tobytes()


def test_a_run_folder_that_names_gymnasium_continues_with_gymnasium(tmp_path):
    whole = train(tmp_path / "whole", generations=3)
    train(tmp_path / "old", generations=1, vectorizer="gymnasium")
    old = esker.resume(tmp_path / "old", generations=3)
    assert tomllib.loads((tmp_path / "old" / "config.toml").read_text())["vectorizer"] == "gymnasium"
    assert center(old).tobytes() == center(whole).tobytes()
