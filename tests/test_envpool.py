"""EnvPool as a vectoriser: the same slots, terminal rewards, truncation and statistics as with Gymnasium."""

import math

import numpy as np
import pytest

import esker
from esker.algorithms.episodes_task import build_task
from esker.cli import main
from esker.engines.engine import InlineEngine
from esker.engines.plan import Plan
from esker.runs.about import describe
from esker.runs.request import configure
from esker.tasks.task import Job

pytest.importorskip("envpool")


def episodes_of(env, vectorizer, center, episodes, slots=8, **options):
    """Returns, lengths and statistics of a fixed policy's episodes."""
    options = {"network": "linear", "vectorizer": vectorizer, "slots": slots, "center_episodes": episodes} | options
    asked = configure(env, options, preset=None)
    config, environment = asked.config, asked.environment
    probe = environment.make()
    task = build_task(config, environment, describe(probe))
    plan = Plan(0, center=episodes)
    engine = InlineEngine(task, None)
    engine.evaluate(Job.of_center(center.astype(np.float32)[: task.network.dimension]), plan)
    engine.close()
    results = plan.of_center()
    assert [r.error for r in results] == [None] * episodes
    return np.array([r.total for r in results]), np.array([r.length for r in results])


BALANCE = np.array([[-0.5, -1, -10, -3], [0.5, 1, 10, 3]])


def linear(weight, bias):
    return np.concatenate([np.ravel(weight), np.ravel(bias)])


def agree(a, b):
    """Means within four standard errors of each other."""
    error = math.hypot(a.std() / math.sqrt(len(a)), b.std() / math.sqrt(len(b)))
    return abs(a.mean() - b.mean()) <= 4 * error + 1e-3 * abs(a.mean())


def test_a_balancing_policy_is_truncated_at_500_steps_by_both():
    center = linear(BALANCE, [0, 0])
    for vectorizer in ("gymnasium", "envpool"):
        totals, lengths = episodes_of("CartPole-v1", vectorizer, center, 12)
        assert (totals == 500).all()
        assert (lengths == 500).all()


def test_every_step_of_a_falling_cartpole_is_rewarded_the_last_one_too():
    center = linear(np.zeros((2, 4)), [0, 1])
    both = [episodes_of("CartPole-v1", vectorizer, center, 64) for vectorizer in ("gymnasium", "envpool")]
    for totals, lengths in both:
        assert (totals == lengths).all()
        assert 7 <= lengths.min() <= lengths.max() <= 12
    assert agree(both[0][0], both[1][0])


def test_halfcheetah_pays_a_fixed_policy_the_same():
    center = linear(np.random.default_rng(0).normal(0, 0.3, (6, 17)), np.zeros(6))
    options = {"max_episode_steps": 100}
    both = [episodes_of("HalfCheetah-v5", v, center, 16, **options) for v in ("gymnasium", "envpool")]
    assert (both[0][1] == 100).all()
    assert (both[1][1] == 100).all()
    assert agree(both[0][0], both[1][0]), (both[0][0].mean(), both[1][0].mean())


def test_pong_is_lost_by_doing_nothing_in_both():
    pytest.importorskip("ale_py")
    options = {"network": "conv-lstm", "channels": 2, "lstm_size": 2, "normalize_observations": False}
    size = 1_000_000  # more zeros than the network has parameters: every output is 0 and action 0 is to do nothing
    for vectorizer in ("gymnasium", "envpool"):
        totals, lengths = episodes_of("ALE/Pong-v5", vectorizer, np.zeros(size), 2, slots=2, **options)
        assert (totals == -21).all()
        assert (abs(lengths - 760) < 40).all(), lengths


def test_the_episode_cap_holds_and_slots_do_not_leak_into_each_other():
    center = linear(BALANCE, [0, 0])
    totals, lengths = episodes_of("CartPole-v1", "envpool", center, 20, slots=6, max_episode_steps=33)
    assert (totals == 33).all()
    assert (lengths == 33).all()


def test_a_pooled_run_trains_and_says_that_it_is_inexact(tmp_path, cli):
    done = cli("train", "CartPole-v1", "--vectorizer", "envpool", "--generations", 6, "--run-dir", "run", "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert "EnvPool steps the environments" in done.stdout
    assert "inexact" in done.stdout
    rows = esker.Run(tmp_path / "run").history
    assert rows[-1]["return_mean"] > 1.5 * rows[0]["return_mean"]
    assert esker.Run(tmp_path / "run").config.vectorizer == "envpool"
    assert cli("resume", "run", "--generations", 7).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MountainCarContinous-v0"], "unknown environment"),
        (["worlds:Corridor"], "vectorizer envpool does not run your own environments"),
        (["CartPole-v1", "--time-aware"], "vectorizer envpool does not support time_aware"),
        (["InvertedPendulum-v4", "--env-kwargs", '{"nonsense": 1}'], "does not take"),
        (["Blackjack-v1", "--hidden", "8"], "EnvPool's Blackjack-v1 is another environment"),
        (["Taxi-v4"], "EnvPool has no environment 'Taxi-v4'; did you mean"),
    ],
)
def test_what_envpool_cannot_do_is_refused_in_one_line(capsys, arguments, message):
    assert main(["train", *arguments, "--vectorizer", "envpool", "--generations", "1"]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said


def test_auto_uses_envpool_where_native_stepping_does_not_cover_the_environment(tmp_path, capsys):
    options = {"preset": None, "population": 2, "max_episode_steps": 20, "generations": 1, "workers": 0}
    for env, vectorizer in (("MountainCarContinuous-v0", "envpool"), ("CartPole-v1", "native")):
        run = esker.train(env, vectorizer="auto", run_dir=str(tmp_path / env), **options)
        assert run.config.vectorizer == vectorizer
        assert ("EnvPool steps the environments" in capsys.readouterr().out) == (vectorizer == "envpool")


def test_auto_stays_with_gymnasium_where_envpool_does_not_fit(tmp_path):
    run = esker.train(
        "CartPole-v1", preset=None, vectorizer="auto", time_aware=True, generations=1, workers=0, run_dir=str(tmp_path / "a")
    )
    assert run.config.vectorizer == "gymnasium"


@pytest.mark.parametrize("arguments", [["--no-fire"], ["--actions", "RIGHT,LEFT"], ["--crop", "34,194"]])
def test_what_only_gymnasiums_games_have_is_refused(arguments, tmp_path, capsys):
    request = ["train", "ALE/Pong-v5", "--preset", "none", "--network", "linear", "--vectorizer", "envpool"]
    assert main([*request, *arguments, "--run-dir", str(tmp_path / "run")]) == 2
    message = f"vectorizer envpool does not support {arguments[0]}; use --vectorizer gymnasium"
    assert capsys.readouterr().err.strip().endswith(message)
