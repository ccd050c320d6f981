"""Limits of steps in the algorithms with gradients: kept to within one episode of each actor, and reported."""

from __future__ import annotations

import pytest
from test_hybrids import ENV, KINDS, SMALL

import esker

EPISODE = 10  # steps of the world that these runs train in
ACTORS = {"td3": 1, "cem-rl": 4, "p-cem-rl": 4, "acem-rl": 1, "one-plus-one": 1, "aes-rl": 1}
# Generations that would go far beyond the limit.
LONG = {algo: {"results_per_generation": 50} for algo in ("acem-rl", "one-plus-one", "aes-rl")}
LONG |= {"td3": {"generation_steps": 5000}, "cem-rl": {}, "p-cem-rl": {}}


def train(algo, path, **more):
    options = SMALL | KINDS[algo] | {"run_dir": str(path)} | more
    return esker.train(ENV, algo=algo, **options)


@pytest.mark.parametrize("algo", KINDS)
@pytest.mark.parametrize("limit", [25, 95], ids=["in random play", "while it learns"])
def test_training_steps_end_within_one_episode_of_each_actor(algo, limit, tmp_path):
    last = train(algo, tmp_path / "run", training_steps=limit, **LONG[algo]).history[-1]
    assert limit <= last["training_steps"] < limit + ACTORS[algo] * EPISODE
    assert last["center_return"] is not None


@pytest.mark.parametrize("algo", ["td3", "aes-rl"])
def test_environment_steps_end_within_one_episode_and_the_evaluations(algo, tmp_path):
    last = train(algo, tmp_path / "run", steps=150, **LONG[algo]).history[-1]
    evaluations = (2 + 2) * EPISODE  # of the centre, and of the mean that the last individual is compared with
    assert 150 <= last["env_steps"] < 150 + EPISODE + evaluations


def test_several_actors_finish_what_they_are_at(tmp_path):
    more = {"deterministic": False, "workers": 2, "actors": 2, "results_per_generation": 50}
    last = train("acem-rl", tmp_path / "run", training_steps=95, **more).history[-1]
    assert 95 <= last["training_steps"] < 95 + 2 * EPISODE


def test_the_reason_names_the_limit_and_what_was_finished(tmp_path):
    run = train("td3", tmp_path / "run", training_steps=95, generation_steps=5000)
    assert run.outcome.reason == "100 training steps done (limit 95: episodes under way are finished)"


def test_a_run_past_its_limit_continues_with_a_larger_one(tmp_path):
    train("cem-rl", tmp_path / "run", training_steps=25)
    run = esker.resume(tmp_path / "run", training_steps=160)
    assert 160 <= run.history[-1]["training_steps"] < 160 + 4 * EPISODE
    assert [row["generation"] for row in run.history] == list(range(len(run.history)))
